package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// takes is a model that thinks for so long and then answers.
func takes(d time.Duration) llm.Model {
	return modelFunc(func(ctx context.Context, _ *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		select {
		case <-time.After(d):
			return said("done"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// A run whose one call takes fifteen seconds, and whose owner changes the limit
// after five.
//
// rows: HAR-10, HAR-44
func TestAChangedLimitOnTimeHoldsForTheCallInFlight(t *testing.T) {
	const wall, none, finished = "max_wall_time_seconds", budget.None, event.ReasonFinalAnswer
	for _, tt := range []struct {
		setting, name string
		limit, value  float64
		ends          event.Reason
		after         time.Duration
	}{
		{wall, "left as it is", 10, 10, event.BudgetReason(wall), 10 * time.Second},
		{wall, "raised enough", 10, 20, finished, 15 * time.Second},
		{wall, "raised too little", 10, 12, event.BudgetReason(wall), 12 * time.Second},
		{wall, "lowered", 10, 7, event.BudgetReason(wall), 7 * time.Second},
		{wall, "lowered below what has passed", 10, 3, event.BudgetReason(wall), 5 * time.Second},
		{wall, "taken away", 10, none, finished, 15 * time.Second},
		{wall, "given to a run without one", none, 7, event.BudgetReason(wall), 7 * time.Second},
		{wall, "given to a run without one, below what has passed", none, 3, event.BudgetReason(wall), 5 * time.Second},
		{wall, "given to a run without one, beyond the call", none, 20, finished, 15 * time.Second},
		{wall, "lowered, from beyond the call", 100, 7, event.BudgetReason(wall), 7 * time.Second},
		{noProgress, "raised enough", 10, 20, finished, 15 * time.Second},
		{noProgress, "raised too little", 10, 12, event.BudgetReason(noProgress), 12 * time.Second},
		{noProgress, "lowered below what has passed", 10, 3, event.BudgetReason(noProgress), 5 * time.Second},
		{noProgress, "taken away", 10, none, finished, 15 * time.Second},
		{noProgress, "given to a run without one", none, 7, event.BudgetReason(noProgress), 7 * time.Second},
	} {
		t.Run(tt.setting+" "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).model(takes(15 * time.Second))
				if tt.setting == noProgress {
					r = newRig(t).tools(lasts("slow", 15*time.Second)).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
				}
				if err := r.cfg.Limits.Set(tt.setting, tt.limit); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				run := r.start(t.Context())
				time.Sleep(5 * time.Second)
				r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: tt.setting, Value: tt.value})
				o := outcome(t, run)
				if took := time.Since(began); o.Reason != tt.ends || took != tt.after {
					t.Errorf("%s after %s, want %s after %s", o.Reason, took, tt.ends, tt.after)
				}
				r.whole(run.ID)
			})
		})
	}
}

func TestAToolCallInFlightGetsTheTimeThatARunIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := toolFunc("slow", func(ctx context.Context) (string, error) {
			select {
			case <-time.After(30 * time.Second):
				return "at last", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		slow.Timeout = 25 * time.Second
		r := newRig(t).tools(slow).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
		r.cfg.Limits.MaxWallSeconds = 10
		began := time.Now()
		run := r.start(t.Context())
		time.Sleep(5 * time.Second)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "max_wall_time_seconds", Value: 100})
		outcome(t, run)
		// Its own timeout holds all the same.
		if got := results(r.whole(run.ID)); time.Since(began) != 25*time.Second || got[0].ErrorType != event.ErrorTimeout {
			t.Errorf("after %s: %+v", time.Since(began), got)
		}
	})
}

// The call's own timeout is sooner than any limit was, and does not hide the
// limit that comes while the call runs.
func TestAWallTimeThatComesDuringAToolCallBoundsIt(t *testing.T) {
	for name, limit := range map[string]float64{"a run without one": budget.None, "a longer one": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := toolFunc("slow", func(ctx context.Context) (string, error) {
					<-ctx.Done()
					return "", context.Cause(ctx)
				})
				slow.Timeout = 25 * time.Second
				r := newRig(t).tools(slow).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
				r.cfg.Limits.MaxWallSeconds = limit
				began := time.Now()
				run := r.start(t.Context())
				time.Sleep(5 * time.Second)
				r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "max_wall_time_seconds", Value: 10})
				o := outcome(t, run)
				got := results(r.whole(run.ID))
				if took := time.Since(began); took != 10*time.Second || o.Limit != "max_wall_time_seconds" || !got[0].IsError {
					t.Errorf("%s after %s: %+v", o.Reason, took, got)
				}
			})
		})
	}
}

// A limit that comes while a retry waits ends the run at once, because nothing
// could happen before the wait is over.
func TestAWallTimeThatComesWhileARetryWaitsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(
			scripted.Turn{Error: &scripted.Failure{Class: llm.ClassThrottled, RetryAfter: new(50 * time.Second)}},
			scripted.Turn{Text: "done"})
		began := time.Now()
		run := r.start(t.Context())
		time.Sleep(5 * time.Second)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "max_wall_time_seconds", Value: 10})
		o := outcome(t, run)
		r.whole(run.ID)
		if took := time.Since(began); took != 5*time.Second || o.Limit != "max_wall_time_seconds" {
			t.Errorf("%s after %s", o.Reason, took)
		}
	})
}

// The run works for four seconds of its ten, and waits for days for a person and for a
// resume.
//
// rows: HAR-10, HAR-44
func TestNeitherParkedTimeNorAPersonsUsesUpTheWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := toolFunc("look", func(context.Context) (string, error) { time.Sleep(2 * time.Second); return "seen", nil })
		r := newRig(t).tools(look).gate("look").turns(
			scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{ToolCalls: calls("look", `{}`)}, scripted.Turn{Text: "done"})
		r.cfg.Limits.MaxWallSeconds = 10
		parked := r.start(t.Context())
		parkedAs(t, parked, event.ParkApproval)
		time.Sleep(48 * time.Hour)
		r.asker(func(_ context.Context, p event.Question) (event.Resolution, error) {
			time.Sleep(time.Hour)
			return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
		})
		o := outcome(t, r.resume(parked.ID))
		if o.Reason != event.ReasonFinalAnswer {
			t.Errorf("outcome %+v", o)
		}
	})
}

// Ten seconds are ten seconds, over any number of processes; the day in between does
// not count.
func TestALimitOnTimeGoesOnAcrossProcesses(t *testing.T) {
	for setting, limits := range map[string]budget.Limits{
		"max_wall_time_seconds":   {MaxWallSeconds: 10},
		"max_no_progress_seconds": {MaxIdleSeconds: 10},
	} {
		t.Run(setting, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).model(takes(15 * time.Second))
				r.cfg.Limits = limits
				ctx, interrupt := context.WithCancelCause(t.Context())
				run := r.start(ctx)
				time.Sleep(6 * time.Second)
				interrupt(engine.ErrInterrupted)
				parkedAs(t, run, event.ParkInterrupted)
				time.Sleep(24 * time.Hour)
				began := time.Now()
				o := outcome(t, r.other().resume(run.ID))
				if took := time.Since(began); o.Reason != event.BudgetReason(setting) || took != 4*time.Second {
					t.Errorf("%s after %s more", o.Reason, took)
				}
			})
		})
	}
}
