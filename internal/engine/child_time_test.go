package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/scripted"
)

// Where the owner wants to be asked at a limit on the time, children park at it
// and are not ended: what they did is kept for the raise.
func TestChildrenParkAtALimitOnTimeThatAsks(t *testing.T) {
	for setting, limit := range aMinute {
		t.Run(setting, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worked := 0
				work := toolFunc("work", func(context.Context) (string, error) {
					worked++
					return "ok", nil
				})
				rest := toolFunc("rest", func(ctx context.Context) (string, error) {
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(90 * time.Second):
						return "ok", nil
					}
				})
				rest.Effect = event.EffectIdempotent
				child := newRig(t).tools(work, rest).turns(
					scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{ToolCalls: calls("rest", "{}")},
					scripted.Turn{ToolCalls: calls("rest", "{}")}, scripted.Turn{Text: "42"})
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
				limit(&r.cfg.Limits)
				r.cfg.OnBudget = map[string]agent.OnBudget{setting: agent.BudgetAsk}
				run := r.start(t.Context())
				for range 2 { // it is not raised when it is resumed
					parkedAs(t, run, event.ParkInput)
					if s := wait(t, run); s.Parked.Limit != setting {
						t.Errorf("parked as %+v", s.Parked)
					}
					id := r.children(run.ID)[0]
					if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Parked {
						t.Errorf("the child is %+v, %v", row, err)
					}
					run = r.other().resume(run.ID)
				}
				parkedAs(t, run, event.ParkInput)
				r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: setting, Value: 600, By: "ann"})
				if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
					t.Errorf("%+v", o)
				}
				if got := results(r.whole(run.ID)); len(got) != 1 || got[0].Output != "42" || worked != 1 {
					t.Errorf("%+v, worked %d times", got, worked)
				}
				r.ended(run.ID)
				r.ended(r.children(run.ID)[0])
			})
		})
	}
}
