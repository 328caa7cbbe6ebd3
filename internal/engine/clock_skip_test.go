package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// In a sleep of the machine its clock goes on and the time of the process stands
// still, as they do here when the clock is set forward.
const night = 8 * time.Hour

// skipped is what a journal says was skipped.
func skipped(events []event.Event) (sum time.Duration) {
	for _, e := range events {
		sum += time.Duration(e.SkippedMs) * time.Millisecond
	}
	return sum
}

// spent is what the journal of a run says it has used.
func (r *rig) spent(id string) budget.Spent {
	r.t.Helper()
	m, err := r.Inspect(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return m.(*agent.Machine).Spent()
}

// rows: HAR-10, HAR-44
func TestALimitOnTimeLeavesOutTheSleepOfTheMachine(t *testing.T) {
	for setting, limit := range aMinute {
		for name, c := range map[string]struct {
			lasts time.Duration
			ends  event.Reason
			after time.Duration
		}{
			"a call that fits": {50 * time.Second, event.ReasonFinalAnswer, 50 * time.Second},
			"one that doesn't": {70 * time.Second, event.BudgetReason(setting), time.Minute},
		} {
			t.Run(setting+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, clock := setRig(t)
					r.tools(lasts("slow", c.lasts)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "done"})
					limit(&r.cfg.Limits)
					began := time.Now()
					run := r.start(t.Context())
					time.Sleep(20 * time.Second)
					clock.set(night)
					o := outcome(t, run)
					if took := time.Since(began); o.Reason != c.ends || took != c.after {
						t.Errorf("%s after %s, want %s after %s", o.Reason, took, c.ends, c.after)
					}
					events := r.whole(run.ID)
					if got := skipped(events); got != night {
						t.Errorf("the journal says that %s were skipped", got)
					}
					if got := r.spent(run.ID).Active; got != c.after {
						t.Errorf("the journal says that the run went for %s, want %s", got, c.after)
					}
					inOrder(t, events)
				})
			})
		}
	}
}

// A machine may fall asleep amid a commit, and does so here amid each: what
// begins after it has the whole of the time that is left, and no more.
func TestTimeLimitExcludesSleepBeforeEffect(t *testing.T) {
	for name, c := range map[string]struct {
		lasts time.Duration
		ends  event.Reason
	}{
		"a call that fits": {50 * time.Second, event.ReasonFinalAnswer},
		"one that doesn't": {70 * time.Second, "budget:max_wall_time_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &settable{}
				store := &watched{Store: memory.New(clock.now), onAppend: func(journal.Batch) error {
					clock.set(night)
					return nil
				}}
				r := newRig(t, store)
				r.Engine = clock.engine(store)
				r.cfg.Limits.MaxWallSeconds = 60
				run := r.tools(lasts("slow", c.lasts)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
				if o := outcome(t, run); o.Reason != c.ends {
					t.Errorf("%+v", o)
				}
				if got := r.spent(run.ID).Active; got != min(c.lasts, time.Minute) {
					t.Errorf("the run went for %s", got)
				}
			})
		})
	}
}

func TestChildrenAndTheRunAboveBothLeaveOutTheSleepOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		child := newRig(t, r.store).tools(lasts("slow", 50*time.Second)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "42"})
		child.cfg.Limits.MaxWallSeconds = 60
		r.turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.start(t.Context())
		time.Sleep(20 * time.Second)
		clock.set(night)
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		for _, id := range append(r.children(run.ID), run.ID) {
			if got := skipped(r.whole(id)); got != night {
				t.Errorf("the journal of %s says that %s were skipped", id, got)
			}
		}
	})
}

// The recorded duration of a call or a hook excludes the sleep.
func TestWhatLastedIsMeasuredWithoutTheSleepOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		child := newRig(t, r.store).tools(lasts("slow", 50*time.Second)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "42"})
		r.turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		r.hooks(hook.Hook{Name: "look", Stage: event.HookAfterTool, Kind: hook.Observer, Run: func(context.Context, hook.Call) (hook.Answer, error) {
			time.Sleep(8 * time.Second)
			return hook.Answer{}, nil
		}})
		run := r.start(t.Context())
		time.Sleep(20 * time.Second)
		clock.set(night)
		time.Sleep(35 * time.Second)
		clock.set(night)
		outcome(t, run)
		for _, id := range append(r.children(run.ID), run.ID) {
			if got := results(r.whole(id)); len(got) != 1 || got[0].DurationMs != 50_000 {
				t.Errorf("of 50 s, the journal of %s says: %+v", id, got)
			}
		}
		for _, e := range r.whole(run.ID) {
			if d, ok := e.Data.(event.HookResult); ok && d.DurationMs != 8_000 {
				t.Errorf("of a hook of 8 s, the journal says: %+v", d)
			}
		}
	})
}

// A time that was promised to a person follows the wall clock, and is due when the
// machine wakes.
func TestWaitsAndExpiriesGoOnWhileTheMachineSleeps(t *testing.T) {
	const heartbeat = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.turns(throttled()...).start(t.Context())
		time.Sleep(20 * time.Second)
		clock.set(night)
		began := time.Now()
		if o := outcome(t, run); !o.OK {
			t.Errorf("%+v", o)
		}
		if took := time.Since(began); took > heartbeat {
			t.Errorf("the wait was over %s after the machine woke", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		r.gate("work").cfg.Approve, r.cfg.Approvals.Seconds = agent.ApproveWait, 3600
		r.tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil }))
		run := r.turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
		time.Sleep(time.Minute)
		clock.set(night)
		began := time.Now()
		outcome(t, run)
		if took := time.Since(began); took > heartbeat {
			t.Errorf("the approval expired %s after the machine woke", took)
		}
		if res := results(r.whole(run.ID)); res[0].ErrorType != event.ErrorExpired {
			t.Errorf("%+v", res[0])
		}
	})
}

func TestACorrectionOfTheClockIsNoSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := setRig(t)
		run := r.tools(lasts("slow", 10*time.Second)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
		time.Sleep(5 * time.Second)
		clock.set(time.Second)
		outcome(t, run)
		if got := skipped(r.whole(run.ID)); got != 0 {
			t.Errorf("%s were skipped", got)
		}
		if got := r.spent(run.ID).Active; got != 11*time.Second {
			t.Errorf("the run went for %s", got)
		}
	})
}

// Time in which no process drove the run is not skipped time.
func TestARunThatIsTakenUpAgainHasSkippedNothing(t *testing.T) {
	for name, by := range map[string]time.Duration{"": 0, ", with a clock that was set back": -2 * day} {
		t.Run("a day later"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, clock := setRig(t)
				r.cfg.Limits.MaxWallSeconds = 60
				run := r.tools(lasts("slow", 20*time.Second)).turns(scripted.Turn{ToolCalls: calls("slow", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
				time.Sleep(10 * time.Second)
				run.Interrupt()
				parkedAs(t, run, event.ParkInterrupted)
				time.Sleep(day)
				clock.set(by)
				other := r.other()
				other.Engine = clock.engine(r.store)
				if o := outcome(t, other.resume(run.ID)); !o.OK {
					t.Errorf("%+v", o)
				}
				if got := skipped(r.whole(run.ID)); got != 0 {
					t.Errorf("%s were skipped", got)
				}
			})
		})
	}
}
