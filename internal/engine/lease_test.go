package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

func TestALostLeaseStopsTheDriverWithoutAnotherEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{}, 1)
		r := newRig(t).tools(blocking("work", started)).turns(scripted.Turn{ToolCalls: calls("work", "{}")})
		run := r.start(t.Context())
		<-started
		row, err := r.store.Run(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.store.Acquire(t.Context(), run.ID, "thief", row.Owner, time.Hour); err != nil {
			t.Fatal(err)
		}
		_, err = run.Wait(t.Context())
		mustBe(t, err, journal.ErrStale)
		after, err := r.store.Run(t.Context(), run.ID)
		if err != nil || after.Seq != row.Seq || after.Owner != "thief" {
			t.Errorf("the run's row went from %+v to %+v (%v)", row, after, err)
		}
	})
}

func TestLongToolKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := toolFunc("long", func(ctx context.Context) (string, error) { time.Sleep(100 * time.Second); return "worked", nil })
		r := newRig(t).tools(long).turns(scripted.Turn{ToolCalls: calls("long", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		time.Sleep(90 * time.Second)
		for name, e := range map[string]*rig{"another engine": r.other(), "the same engine": r} {
			_, err := e.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return e.env, nil })
			if _, held := errors.AsType[*journal.HeldError](err); !held {
				t.Errorf("%s: error %v, want that the run is held", name, err)
			}
		}
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		r.whole(run.ID)
	})
}

func TestAHeartbeatThatFailsOnceCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Int32
		store := &watched{Store: memory.New(nil), onRenew: func() error {
			if failures.Add(1) == 1 {
				return journal.ErrLocked
			}
			return nil
		}}
		long := toolFunc("long", func(context.Context) (string, error) { time.Sleep(time.Minute); return "worked", nil })
		r := newRig(t, store).tools(long).turns(scripted.Turn{ToolCalls: calls("long", "{}")}, scripted.Turn{Text: "done"})
		if o := outcome(t, r.start(t.Context())); !o.OK || failures.Load() < 2 {
			t.Errorf("outcome %+v after %d heartbeats", o, failures.Load())
		}
	})
}

func TestAJournalThatStaysAwayBeyondTheLeaseStopsTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil), onRenew: func() error { return journal.ErrLocked }}
		started := make(chan struct{}, 1)
		r := newRig(t, store).tools(blocking("work", started)).turns(scripted.Turn{ToolCalls: calls("work", "{}")})
		began := time.Now()
		_, err := r.start(t.Context()).Wait(t.Context())
		mustBe(t, err, journal.ErrLocked)
		if waited := time.Since(began); waited != 15*time.Second {
			t.Errorf("the driver went on for %s", waited)
		}
	})
}

func TestTwoEnginesThatResumeAtOnceGiveOneDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(scripted.Turn{Text: "done"})
		first := r.gate("none").start(t.Context())
		first.Interrupt()
		id := first.ID
		if s := wait(t, first); s.Outcome != nil {
			t.Skip("the run was faster than its interrupt")
		}
		var driven, held atomic.Int32
		done := make(chan struct{})
		for range 8 {
			e := r.other()
			go func() {
				run, err := e.Resume(t.Context(), id, func(event.RunStarted) (perform.Env, error) { return e.env, nil })
				if _, ok := errors.AsType[*journal.HeldError](err); ok {
					held.Add(1)
				} else if err == nil {
					driven.Add(1)
					_, _ = run.Wait(t.Context())
				} else if !errors.Is(err, journal.ErrEnded) {
					t.Error(err)
				}
				done <- struct{}{}
			}()
		}
		for range 8 {
			<-done
		}
		if driven.Load() != 1 {
			t.Errorf("%d drivers, %d turned away", driven.Load(), held.Load())
		}
		r.whole(id)
	})
}
