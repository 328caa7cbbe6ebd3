package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// What a run paid before a defect ended it is in its outcome and on its account,
// wherever the defect was: providers charge for defects, too.
func TestARunThatADefectEndsSaysWhatItsOwnCallsCost(t *testing.T) {
	first := llm.Usage{Input: 10, Output: 5}
	at := func(kind event.Type, how func() error) func(*event.Event) error {
		return func(e *event.Event) error {
			if e.Type() == kind && e.Cycle == 2 {
				return how()
			}
			return nil
		}
	}
	boom := func() error { panic("boom") }
	misfit := func() error { return errors.New("misfit") }
	whole := llm.Usage{Estimated: true} // what was set aside, whatever that was
	for name, c := range map[string]struct {
		apply func(*event.Event) error
		next  bool
		delay time.Duration
		// second is what the call of the second cycle is charged.
		second llm.Usage
	}{
		"over the answer":                  {apply: at(event.TypeModelResponse, misfit), second: llm.Usage{Input: 30, Output: 7}},
		"in a panic over the answer":       {apply: at(event.TypeModelResponse, boom), second: llm.Usage{Input: 30, Output: 7}},
		"when the answer is on the record": {next: true, second: llm.Usage{Input: 30, Output: 7}},
		"while the call is under way":      {apply: at(event.TypeInputReceived, misfit), delay: time.Hour, second: whole},
		"over the intent":                  {apply: at(event.TypeModelRequested, misfit)},
		"over what is set aside":           {apply: at(event.TypeBudgetReserved, misfit)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := uses(30, 7, scripted.Turn{Text: "done"})
				second.Delay = c.delay
				r := newRig(t).tools(say()).turns(uses(10, 5, scripted.Turn{ToolCalls: calls("say", `{"text":"hi"}`)}), second).priced(1000, 1000)
				r.cfg.MaxTokens = 100
				b := &broken{Machine: agent.New(), apply: c.apply}
				if c.next {
					b.next = func() []machine.Action {
						if b.Spent().Turns == 2 {
							return []machine.Action{nil}
						}
						return nil
					}
				}
				e := engine.New(r.store, func(string) (machine.Machine, error) { return b, nil }, engine.Options{})
				defer e.Close()
				r.Engine = e
				run := r.start(t.Context())
				if c.delay > 0 {
					synctest.Wait()
					err := run.Send(t.Context(), journal.Command{Kind: journal.Input, Text: "and this"})
					if err != nil && !errors.Is(err, journal.ErrEnded) { // it ends by what it was sent
						t.Fatal(err)
					}
				}
				s, err := run.Wait(t.Context())
				if err == nil || s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
					t.Fatalf("%+v, %v", s.Outcome, err)
				}
				var reserved event.BudgetReserved
				var committed, told llm.Usage
				cost := 0.0
				for _, e := range r.whole(run.ID) {
					switch d := e.Data.(type) {
					case event.BudgetReserved:
						reserved = d
					case event.BudgetCommitted:
						reserved.ID = ""
						committed.Input, committed.Output = committed.Input+d.Input, committed.Output+d.Output
					case event.ModelResponse:
						told, cost = told.Add(d.Usage), cost+d.Cost.USD
					case event.ModelAttemptFailed:
						told, cost = told.Add(d.Usage), cost+d.Cost.USD
					}
				}
				if c.second.Estimated {
					c.second.Input, c.second.Output = reserved.Input, reserved.Output
				}
				want, o := first.Add(c.second), s.Outcome
				if o.Usage != want || told != want || committed.Input != want.Input || committed.Output != want.Output || reserved.ID != "" {
					t.Errorf("used %+v; the outcome says %+v, the calls %+v, the account %+v, and %q is open", want, o.Usage, told, committed, reserved.ID)
				}
				if o.Cost == nil || !near(o.Cost.USD, float64(want.Input+want.Output)/1000) || !near(cost, o.Cost.USD) || !o.Cost.Priced {
					t.Errorf("cost %+v, by its calls %v", o.Cost, cost)
				}
				if folded, err := r.other().Inspect(t.Context(), run.ID); err != nil || folded.State().Outcome == nil {
					t.Errorf("its journal folds to %+v, %v", folded, err)
				}
			})
		})
	}
}
