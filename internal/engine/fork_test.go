package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// eventful is a rig whose run has calls beside each other, a failed attempt, a
// nudge and an answer that a message followed.
func eventful(t *testing.T) *rig {
	t.Helper()
	read := toolFunc("read", func(context.Context) (string, error) { return "read it", nil })
	read.ReadOnly, read.Concurrent = true, true
	broken := toolFunc("broken", func(context.Context) (string, error) { return "", errors.New("does not work") })
	return newRig(t).tools(read, broken).turns(
		scripted.Turn{ToolCalls: calls("read", "{}", "read", "{}", "broken", "{}")},
		scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Partial: "half an"}},
		scripted.Turn{Text: "thinking", ToolCalls: calls("read", "{}")},
		scripted.Turn{},
		scripted.Turn{Text: "done"},
	)
}

func (r *rig) fork(run string, seq int64, change event.RunForked) (string, *drive.Branch) {
	r.t.Helper()
	b, err := r.Branch(r.t.Context(), run, seq)
	if err != nil {
		r.t.Fatal(err)
	}
	id, err := r.Fork(r.t.Context(), b, change)
	if err != nil {
		r.t.Fatal(err)
	}
	return id, b
}

func TestAForkAtEveryEventIsAWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := eventful(t)
		run := r.start(t.Context())
		want := outcome(t, run)
		last := int64(len(r.whole(run.ID)))
		for seq := int64(1); seq <= last; seq++ {
			id, b := r.fork(run.ID, seq, event.RunForked{})
			if b.Seq > seq || b.Run != run.ID {
				t.Fatalf("fork at %d shares %s up to %d", seq, b.Run, b.Seq)
			}
			if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Queued || row.Owner != "" {
				t.Errorf("a fork that nobody drives is %+v, %v", row, err)
			}
			again, _ := r.fork(id, b.Seq+1, event.RunForked{})
			for _, fork := range []string{id, again} {
				o := outcome(t, r.resume(fork))
				if o.FinalOutput != want.FinalOutput || o.Cycles != want.Cycles {
					t.Errorf("fork at %d ends as %+v", seq, o)
				}
				if o.Usage.Output > want.Usage.Output || b.Machine.State().Cycle > 1 && o.Usage.Output == want.Usage.Output {
					t.Errorf("fork at %d spent %+v, the run %+v: what was inherited does not count", seq, o.Usage, want.Usage)
				}
				v, err := journal.Verify(t.Context(), r.store, fork, b.Hash)
				if err != nil || v.HeadSeq != b.Seq {
					t.Errorf("fork at %d: %+v, %v", seq, v, err)
				}
			}
		}
		if got := int64(len(r.whole(run.ID))); got != last {
			t.Errorf("the forks changed their run: %d events, then %d", last, got)
		}
	})
}

func TestAForkBeginsWhereNothingIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := eventful(t)
		run := r.start(t.Context())
		outcome(t, run)
		events := r.whole(run.ID)
		for _, e := range events {
			b, err := r.Branch(t.Context(), run.ID, e.Seq)
			if err != nil || b.Requested != e.Seq || b.Seq > e.Seq {
				t.Fatalf("at %d (%s): %v", e.Seq, e.Type(), err)
			}
			if !whole(events[:b.Seq]) {
				t.Errorf("at %d (%s): something is open at %d", e.Seq, e.Type(), b.Seq)
			}
			for better := b.Seq + 1; better <= e.Seq; better++ {
				if whole(events[:better]) {
					t.Errorf("at %d (%s): %d, and nothing is open at %d", e.Seq, e.Type(), b.Seq, better)
				}
			}
		}
		for _, seq := range []int64{-1, 0, int64(len(events)) + 1} {
			_, err := r.Branch(t.Context(), run.ID, seq)
			mustBe(t, err, drive.ErrNoSuchEvent)
		}
		_, err := r.Branch(t.Context(), "nobody", 1)
		mustBe(t, err, journal.ErrNotFound)
	})
}

// whole reports whether every intent among the events has its settlement, and that
// the run has not ended.
func whole(events []event.Event) bool {
	models, calls, cycles := 0, 0, 0
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ModelRequested:
			models++
		case event.ModelAttemptFailed:
			models--
		case event.ModelResponse:
			models--
			if calls += len(d.ToolCalls); len(d.ToolCalls) > 0 {
				cycles++
			}
		case event.ToolResult:
			calls--
		case event.ToolResults:
			cycles--
		case event.RunTerminatedBy:
			return false
		}
	}
	return models == 0 && calls == 0 && cycles == 0
}

func TestAForkMayChangeTheResultThatTheModelHasNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		turn := 0
		r := newRig(t).tools(toolFunc("read", func(context.Context) (string, error) { return "original", nil })).
			model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
				for _, m := range req.Messages {
					for _, p := range m.Parts {
						if res, ok := p.(llm.ToolResult); ok {
							seen = append(seen, res.Output)
						}
					}
				}
				if turn++; turn%2 == 1 {
					return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "read"}}}, nil
				}
				return said("done"), nil
			}))
		run := r.start(t.Context())
		outcome(t, run)
		call := run.ID + "-1-1"
		closed := int64(0)
		for _, e := range r.whole(run.ID) {
			if e.Type() == event.TypeToolResults {
				closed = e.Seq
			}
		}
		changed := event.RunForked{Results: []event.ForkedResult{{CallID: call, Output: "another"}}}
		turn = 1
		id, _ := r.fork(run.ID, closed, changed)
		if o := outcome(t, r.resume(id)); o.FinalOutput != "done" {
			t.Errorf("outcome %+v", o)
		}
		if diff := cmp.Diff([]string{"original", "another"}, seen); diff != "" {
			t.Errorf("the results that the model saw (-want +got):\n%s", diff)
		}
		for seq, want := range map[int64]string{
			2:                           "it has none up to event 2",
			closed - 1:                  "still open",
			int64(len(r.whole(run.ID))): fmt.Sprintf("fork at %d", closed),
		} {
			b, err := r.Branch(t.Context(), run.ID, seq)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Fork(t.Context(), b, changed)
			if refused, ok := errors.AsType[*drive.ResultError](err); !ok || !strings.Contains(refused.Error(), want) {
				t.Errorf("at %d: %v, want %q", seq, err, want)
			}
		}
	})
}

func TestAForkKeepsWhatItChangedWhenItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := eventful(t)
		run := r.start(t.Context())
		outcome(t, run)
		b, err := r.Branch(t.Context(), run.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		cfg := b.Machine.(*agent.Machine).Config()
		cfg.System, cfg.Targets = "Be brief.", []agent.Target{{Model: "test/other"}}
		started, err := agent.Start(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		id, err := r.Fork(t.Context(), b, event.RunForked{Config: started.Config, Options: map[string]string{"model": "test/other"}})
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Resume(t.Context(), id, func(s event.RunStarted) (perform.Env, error) {
			if string(s.Config) != string(started.Config) || s.Options["model"] != "test/other" {
				t.Errorf("the environment is made for %s, %v", s.Config, s.Options)
			}
			return r.env, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		outcome(t, again)
		for _, e := range r.whole(id) {
			if d, ok := e.Data.(event.ModelRequested); ok && d.Model != "test/other" {
				t.Errorf("event %d asks %s", e.Seq, d.Model)
			}
		}
	})
}
