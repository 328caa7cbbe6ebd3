package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
)

// thinks is a person who approves after a while.
func thinks(d time.Duration) func(context.Context, event.Question) (event.Resolution, error) {
	return func(ctx context.Context, _ event.Question) (event.Resolution, error) {
		select {
		case <-ctx.Done():
			return event.Resolution{}, ctx.Err()
		case <-time.After(d):
			return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
		}
	}
}

// gated is a child whose one call needs an approval; then it works for so long before
// it answers.
func gated(t *testing.T, work time.Duration, stores ...journal.Store) *rig {
	send := toolFunc("send", func(ctx context.Context) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(work):
			return "sent", nil
		}
	})
	send.Concurrent = true
	return newRig(t, stores...).tools(send).gate("send").
		turns(scripted.Turn{ToolCalls: calls("send", `{}`)}, scripted.Turn{Text: "42"})
}

// aMinute gives a run a minute of one kind.
var aMinute = map[string]func(*budget.Limits){
	"max_wall_time_seconds":   func(l *budget.Limits) { l.MaxWallSeconds = 60 },
	"max_no_progress_seconds": func(l *budget.Limits) { l.MaxIdleSeconds = 60 },
}

// The time that a person takes to decide about a child's call does not count; the
// child's work before and after does.
func TestAPersonsTimeInAChildIsNotItsParents(t *testing.T) {
	for setting, limit := range aMinute {
		for name, c := range map[string]struct {
			work  time.Duration
			asked bool
			ends  event.Reason
			after time.Duration
		}{
			"at a terminal":                       {30 * time.Second, true, event.ReasonFinalAnswer, 30*time.Minute + 30*time.Second},
			"from elsewhere":                      {30 * time.Second, false, event.ReasonFinalAnswer, 30*time.Minute + 30*time.Second},
			"and what the child does then counts": {2 * time.Minute, true, event.Reason("budget:" + setting), 31 * time.Minute},
		} {
			t.Run(setting+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					child := gated(t, c.work)
					if c.asked {
						child.asker(thinks(30 * time.Minute))
					} else {
						child.cfg.Approve, child.cfg.Approvals.Seconds = agent.ApproveWait, 86_400
					}
					r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
					limit(&r.cfg.Limits)
					began := time.Now()
					run := r.start(t.Context())
					time.Sleep(10 * time.Minute)
					r.rowsFit()
					if !c.asked {
						time.Sleep(20 * time.Minute)
						id := r.children(run.ID)[0]
						r.send(journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ann"})
					}
					if o := outcome(t, run); o.Reason != c.ends || time.Since(began) != c.after {
						t.Errorf("%s after %s, want %s after %s", o.Reason, time.Since(began), c.ends, c.after)
					}
					events := r.whole(run.ID)
					if n := count(events, "child.waiting"); n != 2 {
						t.Errorf("%d times: %v", n, names(events))
					}
					r.ended(run.ID)
				})
			})
		}
	}
}

// A sibling at work, or a tool, takes the run's time as ever.
func TestAChildThatWaitsDoesNotStopTheClockOfItsSibling(t *testing.T) {
	for setting, limit := range aMinute {
		t.Run(setting, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := gated(t, 0).asker(thinks(30 * time.Minute))
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "think", task)}, scripted.Turn{Text: "never"}).
					offers("ask", child).offers("think", newRig(t, child.store).model(takes(time.Hour)))
				r.cfg.Dispatch = agent.ParallelAll
				limit(&r.cfg.Limits)
				began := time.Now()
				run := r.start(t.Context())
				if o := outcome(t, run); o.Reason != event.Reason("budget:"+setting) || time.Since(began) != time.Minute {
					t.Errorf("%s after %s", o.Reason, time.Since(began))
				}
				if n := count(r.whole(run.ID), "child.waiting"); n != 1 {
					t.Errorf("%d times", n)
				}
				r.ended(run.ID)
			})
		})
	}
}

// The clock stops once the sibling is done, and goes on from what it used.
func TestAChildThatWaitsAloneStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := gated(t, 40*time.Second).asker(thinks(30 * time.Minute))
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "think", task)}, scripted.Turn{Text: "never"}).
			offers("ask", child).offers("think", newRig(t, child.store).model(takes(30*time.Second)))
		r.cfg.Dispatch, r.cfg.Limits.MaxWallSeconds = agent.ParallelAll, 60
		began := time.Now()
		run := r.start(t.Context())
		if o := outcome(t, run); o.Reason != "budget:max_wall_time_seconds" || time.Since(began) != 30*time.Minute+30*time.Second {
			t.Errorf("%s after %s", o.Reason, time.Since(began))
		}
		r.ended(run.ID)
	})
}

// After a resume a child waits again only once it said so.
func TestAChildThatWaitedSaysSoAgainAfterAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := gated(t, time.Second).asker(thinks(30 * time.Minute))
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		r.cfg.Limits.MaxIdleSeconds = 60
		run := r.start(t.Context())
		time.Sleep(10 * time.Minute)
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		time.Sleep(time.Hour)
		began := time.Now()
		again := r.other().resume(run.ID)
		if o := outcome(t, again); !o.OK || time.Since(began) != 30*time.Minute+time.Second {
			t.Errorf("%+v after %s", o, time.Since(began))
		}
		var said []bool
		for _, e := range r.whole(run.ID) {
			if d, ok := e.Data.(event.ChildWaiting); ok {
				said = append(said, d.Waiting)
			}
		}
		if len(said) != 3 || !said[0] || !said[1] || said[2] {
			t.Errorf("said %v", said)
		}
	})
}

func TestAChildThatWaitedDoesNotWaitAfterAResumeUnlessItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := gated(t, 2*time.Minute).asker(thinks(time.Hour))
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "never"}).offers("ask", child)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.start(t.Context())
		time.Sleep(10 * time.Minute)
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		id := r.children(run.ID)[0]
		r.send(journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ann"})
		began := time.Now()
		if o := outcome(t, r.other().resume(run.ID)); o.Reason != "budget:max_wall_time_seconds" || time.Since(began) != time.Minute {
			t.Errorf("%+v after %s", o, time.Since(began))
		}
		r.ended(run.ID)
	})
}

// A driver that resumes a run after a crash has no reports of its children yet.
func TestNoChildWaitsAfterACrashUntilItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := gated(t, time.Second).asker(thinks(30 * time.Minute))
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.start(t.Context())
		outcome(t, run)
		m := agent.New()
		for _, e := range r.whole(run.ID) {
			if err := m.Apply(&e); err != nil {
				t.Fatal(err)
			}
			if e.Type() != event.TypeChildWaiting {
				continue
			}
			if s := m.State(); !s.Asking || !s.Deadline.At.IsZero() {
				t.Errorf("a child waits: %+v", s)
			}
			taken := event.Event{Seq: e.Seq + 1, Run: e.Run, Time: e.Time.Add(time.Hour), Data: event.RunResumed{}}
			if err := m.Apply(&taken); err != nil {
				t.Fatal(err)
			}
			if s := m.State(); s.Asking || !s.Deadline.At.Equal(taken.Time.Add(time.Minute)) {
				t.Errorf("taken up: %+v", s)
			}
			break
		}
	})
}
