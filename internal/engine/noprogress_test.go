package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

const noProgress = "max_no_progress_seconds"

// lasts is a tool that takes so long and then says something, unless it is
// stopped.
func lasts(name string, d time.Duration) tool.Tool {
	t := toolFunc(name, func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return name + " is done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	t.Timeout = time.Hour
	return t
}

// A call that brings nothing new for as long as is allowed ends there, and the
// run with it: not when the call would have ended by itself.
//
// rows: HAR-51
func TestTheTimeWithoutProgressEndsWhatIsInFlight(t *testing.T) {
	streaming := modelFunc(func(ctx context.Context, _ *llm.Request, tell func(llm.Delta)) (*llm.Response, error) {
		for {
			tell(llm.Delta{Kind: llm.DeltaText, Text: "and so on, "})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return said("and so on, "), ctx.Err()
			}
		}
	})
	deaf := toolFunc("slow", func(context.Context) (string, error) { time.Sleep(33 * time.Second); return "late", nil })
	for _, tt := range []struct {
		name string
		slow tool.Tool
		// model answers instead of a call of slow.
		model llm.Model
		after time.Duration
	}{
		{name: "a tool", slow: lasts("slow", time.Minute), after: 30 * time.Second},
		{name: "a tool that is deaf", slow: deaf, after: 33 * time.Second},
		{name: "a model", model: takes(time.Minute), after: 30 * time.Second},
		{name: "a model that streams without an end", model: streaming, after: 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				if tt.model != nil {
					r.model(tt.model)
				} else {
					r.tools(tt.slow).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
				}
				r.cfg.Limits.MaxIdleSeconds = 30
				began := time.Now()
				run := r.start(t.Context())
				o := outcome(t, run)
				if took := time.Since(began); o.Reason != event.BudgetReason(noProgress) || o.OK || took != tt.after {
					t.Errorf("%s after %s: %+v", o.Reason, took, o.Error)
				}
				if !strings.Contains(o.NextSafeAction, noProgress) {
					t.Errorf("the advice is %q", o.NextSafeAction)
				}
				for _, res := range results(r.whole(run.ID)) {
					if tt.name == "a tool" && (res.ErrorType != event.ErrorTimeout || !strings.Contains(res.Output, noProgress)) {
						t.Errorf("result %+v", res)
					}
				}
			})
		})
	}
}

// Each result that is new gives the calls beside it the whole time again; one
// that was there before does not.
func TestWhatIsNewMovesTheEndOfTheCallsBesideIt(t *testing.T) {
	for name, tt := range map[string]struct {
		says  func(n string) string
		ends  event.Reason
		after time.Duration
	}{
		"new results":      {func(n string) string { return "part " + n }, event.ReasonFinalAnswer, 25 * time.Second},
		"the same results": {func(string) string { return "nothing yet" }, event.BudgetReason(noProgress), 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				look := tool.New("look", "Look.", func(ctx context.Context, a struct {
					After int    `json:"after"`
					N     string `json:"n"`
				}) (string, error) {
					select {
					case <-time.After(time.Duration(a.After) * time.Second):
						return tt.says(a.N), nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})
				look.ReadOnly, look.Concurrent, look.Effect = true, true, event.EffectPure
				slow := lasts("slow", 25*time.Second)
				slow.ReadOnly, slow.Concurrent, slow.Effect = true, true, event.EffectPure
				r := newRig(t).tools(look, slow).turns(scripted.Turn{ToolCalls: calls(
					"slow", `{}`, "look", `{"after":6,"n":"a"}`, "look", `{"after":12,"n":"b"}`, "look", `{"after":18,"n":"c"}`)},
					scripted.Turn{Text: "done"})
				r.cfg.Limits.MaxIdleSeconds = 10
				began := time.Now()
				run := r.start(t.Context())
				o := outcome(t, run)
				r.whole(run.ID)
				if took := time.Since(began); o.Reason != tt.ends || took != tt.after {
					t.Errorf("%s after %s, want %s after %s", o.Reason, took, tt.ends, tt.after)
				}
			})
		})
	}
}

// A wait that nothing new can come of before the limit is not begun.
func TestNoWaitOutlastsTheTimeWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(
			scripted.Turn{Error: &scripted.Failure{Class: llm.ClassThrottled, RetryAfter: new(50 * time.Second)}},
			scripted.Turn{Text: "done"})
		r.cfg.Limits.MaxIdleSeconds = 30
		began := time.Now()
		o := outcome(t, r.start(t.Context()))
		if took := time.Since(began); took != 0 || o.Limit != noProgress {
			t.Errorf("%s after %s", o.Reason, took)
		}
	})
}

// Where the owner wants to be asked, the run parks at the limit and goes on
// after the raise, with the call that was stopped told to the model.
func TestRunParkedWithoutProgressContinuesAfterRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(lasts("slow", time.Minute)).turns(scripted.Turn{ToolCalls: calls("slow", `{}`)}, scripted.Turn{Text: "done"})
		r.cfg.Limits.MaxIdleSeconds = 30
		r.cfg.OnBudget = map[string]agent.OnBudget{noProgress: agent.BudgetAsk}
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkInput)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: noProgress, Value: 120})
		if o := outcome(t, r.resume(run.ID)); o.Reason != event.ReasonFinalAnswer {
			t.Errorf("outcome %+v", o)
		}
	})
}

// Observers of the end run although the run has no time left.
func TestHookAfterTheRunRunsWithoutTimeLeft(t *testing.T) {
	for setting, limits := range map[string]budget.Limits{
		"max_wall_time_seconds": {MaxWallSeconds: 30}, noProgress: {MaxIdleSeconds: 30},
	} {
		t.Run(setting, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told event.Reason
				tell := hook.Hook{Stage: event.HookAfterRun, Timeout: time.Minute, Run: func(ctx context.Context, c hook.Call) (hook.Answer, error) {
					select {
					case <-time.After(3 * time.Second):
						told = c.Outcome.Reason
					case <-ctx.Done():
					}
					return hook.Answer{}, ctx.Err()
				}}
				r := newRig(t).model(takes(time.Minute)).hooks(tell)
				r.cfg.Limits = limits
				if o := outcome(t, r.start(t.Context())); o.Reason != event.BudgetReason(setting) || told != o.Reason {
					t.Errorf("ended with %s, and the hook heard of %q", o.Reason, told)
				}
			})
		})
	}
}

// A gate that is still being heard when nothing new may come any more is closed
// by that, and its refusal is no news that would carry the run on.
func TestAGateThatTakesAllTheTimeWithoutProgressEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := hook.Hook{Stage: event.HookBeforeTool, Timeout: time.Hour, Run: func(ctx context.Context, _ hook.Call) (hook.Answer, error) {
			<-ctx.Done()
			return hook.Answer{}, ctx.Err()
		}}
		r := newRig(t).tools(say()).turns(saying("hi")...).hooks(slow)
		r.cfg.Limits.MaxIdleSeconds = 30
		began := time.Now()
		run := r.start(t.Context())
		o := outcome(t, run)
		if took := time.Since(began); o.Reason != event.BudgetReason(noProgress) || took != 30*time.Second {
			t.Errorf("%s after %s", o.Reason, took)
		}
		if r := results(r.whole(run.ID)); r[0].ErrorType != event.ErrorHookFailed {
			t.Errorf("the call came to %+v", r[0])
		}
	})
}
