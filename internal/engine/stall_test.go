package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// stalling is a store whose disk holds up the first append of an event of a
// kind for longer than a lease lasts: before it is written, or before it is
// acknowledged.
type stalling struct {
	journal.Store
	kind    string
	written bool
	once    sync.Once
}

const stall = 20 * time.Second

func (s *stalling) Append(ctx context.Context, b journal.Batch) (int64, error) {
	held := false
	if holds(b, s.kind) {
		s.once.Do(func() { held = true })
	}
	if held && !s.written {
		time.Sleep(stall)
	}
	pos, err := s.Store.Append(ctx, b)
	if held && s.written {
		time.Sleep(stall)
	}
	return pos, err
}

func TestStalledCommitLeavesRunToNewHolder(t *testing.T) {
	for name, c := range map[string]struct {
		written bool
		// refused is the first driver's error; ran is how often the tool ran in all,
		// result what the call got.
		refused error
		ran     int32
		result  event.ErrorType
	}{
		"before it is written":      {refused: journal.ErrEnded, ran: 1},
		"before it is acknowledged": {written: true, refused: journal.ErrStale, result: event.ErrorInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran atomic.Int32
				once := toolFunc("once", func(context.Context) (string, error) { ran.Add(1); return "done", nil })
				store := &stalling{Store: memory.New(nil), kind: "tool.started", written: c.written}
				r := newRig(t, store).tools(once).turns(scripted.Turn{ToolCalls: calls("once", "{}")}, scripted.Turn{Text: "done"})
				run := r.start(t.Context())
				time.Sleep(stall - time.Second)
				if o := outcome(t, r.other().resume(run.ID)); !o.OK {
					t.Errorf("the heir: %+v", o)
				}
				before := len(r.whole(run.ID))
				_, err := run.Wait(t.Context())
				mustBe(t, err, c.refused)
				events := r.whole(run.ID)
				if len(events) != before {
					t.Errorf("%d events were written after the heir was done", len(events)-before)
				}
				if got := results(events); len(got) != 1 || got[0].ErrorType != c.result || ran.Load() != c.ran {
					t.Errorf("the tool ran %d times, want %d; results %+v", ran.Load(), c.ran, got)
				}
			})
		})
	}
}

func TestRunContinuesAfterStalledCommitIfLeaseIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		once := toolFunc("once", func(context.Context) (string, error) { ran.Add(1); return "done", nil })
		r := newRig(t, &stalling{Store: memory.New(nil), kind: "tool.started", written: true}).tools(once).
			turns(scripted.Turn{ToolCalls: calls("once", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK || ran.Load() != 1 {
			t.Errorf("outcome %+v, the tool ran %d times", o, ran.Load())
		}
		r.whole(run.ID)
	})
}

func TestCancelCountsWhileDriverLeavesOnStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil)}
		r := newRig(t, store).tools(say()).turns(scripted.Turn{ToolCalls: calls("say", `{"text":"hi"}`)})
		full := failOnce("tool.started", journal.ErrFull)
		store.onAppend = func(b journal.Batch) error {
			err := full(b)
			if err != nil {
				r.send(journal.Command{Run: b.Lease.Run, Kind: journal.Cancel, By: "ann"})
			}
			return err
		}
		run := r.start(t.Context())
		s, err := run.Wait(t.Context())
		mustBe(t, err, journal.ErrFull)
		if s.Outcome == nil || s.Outcome.Reason != event.ReasonCancelled {
			t.Errorf("it is left as %+v", s)
		}
		r.whole(run.ID)
	})
}

// stuck is a store that fails an append and never comes back from a release.
type stuck struct {
	journal.Store
	free chan struct{}
}

func (s *stuck) Append(context.Context, journal.Batch) (int64, error) { return 0, journal.ErrFull }

func (s *stuck) Release(context.Context, journal.Lease) error { <-s.free; return nil }

func TestADriverDoesNotWaitForADiskToGiveItsLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stuck{Store: memory.New(nil), free: make(chan struct{})}
		defer close(store.free)
		r := newRig(t, store).turns(scripted.Turn{Text: "done"})
		began := time.Now()
		run := r.start(t.Context())
		_, err := run.Wait(t.Context())
		mustBe(t, err, journal.ErrFull)
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("it waited for %s", waited)
		}
		if _, err := r.store.Run(t.Context(), run.ID); err != nil {
			t.Error(err)
		}
	})
}
