package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// settable is a wall clock that a test sets while time passes.
type settable struct{ offset atomic.Int64 }

func (c *settable) now() time.Time       { return time.Now().Round(0).Add(time.Duration(c.offset.Load())) }
func (c *settable) set(by time.Duration) { c.offset.Add(int64(by)) }

// setRig is a rig whose journal and engines read a clock that can be set.
func setRig(t *testing.T) (*rig, *settable) {
	c := &settable{}
	r := newRig(t, memory.New(c.now))
	r.Engine = c.engine(r.store)
	return r, c
}

func (c *settable) engine(s journal.Store) *engine.Engine {
	return engine.New(s, newMachine, engine.Options{Now: c.now})
}

const day = 24 * time.Hour

// inOrder says that the times of a journal never go back, and that nothing in
// it lasted less than no time.
func inOrder(t *testing.T, events []event.Event) {
	t.Helper()
	last := time.Time{}
	for _, e := range events {
		if e.Time.Before(last) {
			t.Errorf("event %d (%s) is of %s, and the one before of %s", e.Seq, e.Type(), e.Time, last)
		}
		last = e.Time
		if r, ok := e.Data.(event.ToolResult); ok && r.DurationMs < 0 {
			t.Errorf("call %s took %d ms", r.CallID, r.DurationMs)
		}
	}
}

// throttled is a model that asks for a wait of 50 s before it answers.
func throttled() []scripted.Turn {
	return []scripted.Turn{
		{Error: &scripted.Failure{Class: llm.ClassThrottled, RetryAfter: new(50 * time.Second)}},
		{Text: "done"},
	}
}

func TestAWaitLastsAsLongWhereTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		run := r.turns(throttled()...).start(t.Context())
		began := time.Now()
		time.Sleep(20 * time.Second)
		clock.set(-day)
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if took := time.Since(began); took < 50*time.Second || took > 55*time.Second {
			t.Errorf("the run took %s, want the 50 s that it was told to wait", took)
		}
		inOrder(t, r.whole(run.ID))
	})
}

func TestAWaitOfARunThatWasLeftLastsNoLongerThanItWasSaidTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		run := r.turns(throttled()...).start(t.Context())
		time.Sleep(20 * time.Second)
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		clock.set(-day)
		began := time.Now()
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if took := time.Since(began); took > 55*time.Second {
			t.Errorf("the run took %s after its resume, and was to wait 50 s in all", took)
		}
		inOrder(t, r.whole(run.ID))
	})
}

func TestAnApprovalExpiresInTimeWhereTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		r.gate("work").cfg.Approve, r.cfg.Approvals.Seconds = agent.ApproveWait, 3600
		r.tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil }))
		run := r.turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
		began := time.Now()
		time.Sleep(time.Minute)
		clock.set(-day)
		outcome(t, run)
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("the approval expired after %s, want an hour", took)
		}
		events := r.whole(run.ID)
		if res := results(events); res[0].ErrorType != event.ErrorExpired {
			t.Errorf("result %+v", res[0])
		}
		inOrder(t, events)
	})
}

func TestALimitOnTimeCountsWhatPassedWhereTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		r.cfg.Limits.MaxWallSeconds = 100
		slow := argsTool("slow", nil)
		slow.Run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
			}
			return tool.Result{Output: "done"}, ctx.Err()
		}
		turns := make([]scripted.Turn, 10)
		for i := range turns {
			turns[i] = scripted.Turn{ToolCalls: calls("slow", fmt.Sprintf(`{"to":"%d"}`, i))}
		}
		run := r.tools(slow).turns(turns...).start(t.Context())
		began := time.Now()
		time.Sleep(10 * time.Second)
		clock.set(-day)
		time.Sleep(40 * time.Second)
		clock.set(-day)
		o := outcome(t, run)
		if took := time.Since(began); o.Limit != "max_wall_time_seconds" || took < 95*time.Second || took > 120*time.Second {
			t.Errorf("outcome %+v after %s, want the limit of 100 s", o, took)
		}
		inOrder(t, r.whole(run.ID))
	})
}

func TestALeaseOfASilentProcessEndsWhereTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		run := r.turns(throttled()...).start(t.Context())
		time.Sleep(time.Second)
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		if _, err := r.store.Acquire(t.Context(), run.ID, "somewhere else", "", 15*time.Second); err != nil {
			t.Fatal(err)
		}
		clock.set(-day)
		began := time.Now()
		again := r.resume(run.ID)
		if took := time.Since(began); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("the run was taken after %s, want as long as a lease lasts", took)
		}
		if o := outcome(t, again); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

// The clock of one driver may be permanently ahead of another's.
func TestALivingDriverKeepsItsRunWhereAnothersClockIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		clock.set(day)
		long := toolFunc("long", func(context.Context) (string, error) { time.Sleep(110 * time.Second); return "worked", nil })
		run := r.tools(long).turns(scripted.Turn{ToolCalls: calls("long", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
		other := r.other()
		patience, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		if _, err := other.Resume(patience, run.ID, func(event.RunStarted) (perform.Env, error) { return other.env, nil }); err == nil {
			t.Error("the run was taken from its driver")
		}
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestALivingDriverKeepsItsRunWhereTheClockIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": -day, "back by little": -20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, clock := setRig(t)
				long := toolFunc("long", func(context.Context) (string, error) { time.Sleep(110 * time.Second); return "worked", nil })
				run := r.tools(long).turns(scripted.Turn{ToolCalls: calls("long", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
				time.Sleep(7 * time.Second)
				clock.set(by)
				other := r.other()
				other.Engine = clock.engine(r.store)
				for range 5 {
					_, err := other.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return other.env, nil })
					if _, held := errors.AsType[*journal.HeldError](err); !held {
						t.Fatalf("error %v, want that the run is held", err)
					}
					time.Sleep(20 * time.Second)
				}
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				inOrder(t, r.whole(run.ID))
			})
		})
	}
}
