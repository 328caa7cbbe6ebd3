package engine_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// goroutine is the name of the one that it is called on.
func goroutine() string {
	b := make([]byte, 64)
	name, _, _ := bytes.Cut(b[:runtime.Stack(b, false)], []byte(" ["))
	return string(name)
}

// Each effect takes a moment, in which the driver's goroutine gives up the lock
// that it has while it begins one: an effect that ended before would leave what
// follows to it.
func TestWhatFollowsFromAnEffectIsDoneOnItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const moment = time.Second
		var called, journalled []string
		look := toolFunc("look", func(context.Context) (string, error) {
			called = append(called, goroutine())
			time.Sleep(moment)
			return "seen", nil
		})
		r := newRig(t, &watched{Store: memory.New(nil), onAppend: func(b journal.Batch) error {
			if holds(b, "tool_result") {
				journalled = append(journalled, goroutine())
			}
			return nil
		}}).tools(look).turns(
			scripted.Turn{Delay: moment, ToolCalls: calls("look", "{}")},
			scripted.Turn{Delay: moment, ToolCalls: calls("look", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		r.whole(run.ID)
		if len(called) != 2 || len(journalled) != 2 {
			t.Fatalf("called %d times, journalled %d times", len(called), len(journalled))
		}
		for i := range called {
			if called[i] != called[0] || journalled[i] != called[0] {
				t.Errorf("cycle %d: called on %s, journalled on %s, both on %s in the first", i+1, called[i], journalled[i], called[0])
			}
		}
	})
}

func TestEffectThatEndsDuringCommitIsHandledRightAfter(t *testing.T) {
	const hold = time.Second
	for name, later := range map[string]time.Duration{"at once": 0, "meanwhile": hold / 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := toolFunc("first", func(context.Context) (string, error) { return "one", nil })
				second := toolFunc("second", func(context.Context) (string, error) { time.Sleep(later); return "two", nil })
				first.ReadOnly, first.Concurrent, second.ReadOnly, second.Concurrent = true, true, true, true
				var once sync.Once
				r := newRig(t, &watched{Store: memory.New(nil), onAppend: func(b journal.Batch) error {
					if holds(b, "tool_result") {
						once.Do(func() { time.Sleep(hold) })
					}
					return nil
				}}).tools(first, second).turns(
					scripted.Turn{ToolCalls: calls("first", "{}", "second", "{}")}, scripted.Turn{Text: "done"})
				began := time.Now()
				run := r.start(t.Context())
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				if took := time.Since(began); took != hold {
					t.Errorf("it took %s where one commit was held up for %s", took, hold)
				}
				if got := results(r.whole(run.ID)); len(got) != 2 || got[0].IsError || got[1].IsError {
					t.Errorf("results %+v", got)
				}
			})
		})
	}
}
