package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// remote is a tool whose calls are done elsewhere: begun counts them, asked how often
// one was asked for. A task is done after rounds, each of which is to be waited for.
func remote(wait time.Duration, rounds int, kept func() error) (t tool.Tool, begun, asked *int) {
	begun, asked = new(int), new(int)
	t = tool.Tool{Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`)}
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		id := string(c.Task)
		if id == "" {
			*begun++
			id = fmt.Sprintf(`"t%d"`, *begun)
			if err := c.Run.Keep(ctx, json.RawMessage(id)); err != nil {
				return tool.Result{}, err
			}
			if err := kept(); err != nil {
				return tool.Result{}, err
			}
		}
		if *asked++; *asked < rounds {
			return tool.Result{}, &tool.NotYet{Wait: wait}
		}
		return tool.Result{Output: "done as " + id}, nil
	}
	return t, begun, asked
}

func nothing() error { return nil }

// The process dies after a task was begun: the next one asks for the same task, although
// the call may not be made twice.
func TestTaskIsAskedForAfterACrash(t *testing.T) {
	for _, gated := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
			work, begun, asked := remote(0, 1, nothing)
			r := newRig(t, store).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
			if gated {
				r.gate("work").asker(func(context.Context, event.Question) (event.Resolution, error) {
					return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
				})
			}
			run := r.start(t.Context())
			if _, err := run.Wait(t.Context()); err == nil {
				t.Fatal("the process did not die")
			}
			if got := names(r.journal(run.ID)); !slices.Contains(got, "tool.task") {
				t.Errorf("the journal has %q", got)
			}
			other := r.other()
			other.env.Ask = nil
			if o := outcome(t, other.resume(run.ID)); !o.OK || *begun != 1 || *asked != 2 {
				t.Errorf("gated %t: outcome %+v after %d beginnings and %d questions", gated, o, *begun, *asked)
			}
			if got := results(r.whole(run.ID)); got[0].IsError || got[0].Output != `done as "t1"` {
				t.Errorf("the result is %+v", got[0])
			}
		})
	}
}

// The journal has what a tool keeps before the tool continues.
func TestTaskIsJournalledBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		var seen []string
		work, _, _ := remote(0, 1, func() error {
			rows, err := r.store.Runs(t.Context(), journal.Filter{})
			if err == nil {
				seen = names(r.journal(rows[0].ID))
			}
			return err
		})
		r = newRig(t).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		outcome(t, r.start(t.Context()))
		if !slices.Contains(seen, "tool.task") {
			t.Errorf("the journal had %q", seen)
		}
	})
}

// A short wait is waited for in the process; a long one parks the run, which asks again
// once it is resumed.
func TestLongTaskParksTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, begun, asked := remote(4*time.Minute, 3, nothing)
		r := newRig(t).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		began := time.Now()
		if o := outcome(t, r.start(t.Context())); !o.OK || *begun != 1 || *asked != 3 || time.Since(began) < 8*time.Minute {
			t.Errorf("outcome %+v after %d beginnings, %d questions and %s", o, *begun, *asked, time.Since(began))
		}
		work, begun, asked = remote(6*time.Minute, 3, nothing)
		r = newRig(t).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		for range 2 {
			parkedAs(t, run, event.ParkPaused)
			all := r.journal(run.ID)
			if parked, is := all[len(all)-1].Data.(event.RunParked); !is || parked.Until == nil || !parked.Until.After(time.Now()) {
				t.Errorf("it parked as %+v", all[len(all)-1].Data)
			}
			time.Sleep(time.Minute) // a resume asks at once
			run = r.other().resume(run.ID)
		}
		if o := outcome(t, run); !o.OK || *begun != 1 || *asked != 3 {
			t.Errorf("outcome %+v after %d beginnings and %d questions", o, *begun, *asked)
		}
	})
}
