package agent_test

import (
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
)

// turned plays a run with two answers allowed up to where that limit holds.
func turned(t *testing.T, action agent.OnBudget) *play {
	t.Helper()
	p := newPlay(t, agent.Config{
		Limits: budget.Limits{MaxModelTurns: 2}, OnBudget: map[string]agent.OnBudget{"max_model_turns": action},
	})
	p.answer(asks("", "read a"))
	p.results("c1.1=A")
	p.answer(asks("", "read b"))
	p.results("c2.1=B")
	return p
}

func TestReachingALimitMeansWhatItsOwnerSays(t *testing.T) {
	for action, ok := range map[agent.OnBudget]bool{"": false, agent.BudgetStop: false, agent.BudgetOK: true} {
		o := turned(t, action).outcome()
		if o.Status != event.StatusStopped || o.OK != ok || o.Completed || o.Limit != "max_model_turns" || o.NextSafeAction == "" {
			t.Errorf("%q: %+v", action, o)
		}
	}
}

// The owner is asked as often as the run is resumed without an answer; with one
// it goes on where it stood.
func TestARunThatAsksAtItsLimitGoesOnWhenTheLimitIsRaised(t *testing.T) {
	p := turned(t, agent.BudgetAsk)
	parked := func() bool {
		s := p.live.State()
		return s.Phase == machine.Parked && s.Parked.Reason == event.ParkInput && s.Parked.Limit == "max_model_turns"
	}
	if !parked() || p.call != nil {
		t.Fatalf("it did not park:\n%s", p.log.String())
	}
	p.resume()
	if !parked() || p.call != nil {
		t.Fatalf("it went on unasked:\n%s", p.log.String())
	}
	p.command(event.BudgetRaised{Setting: "max_model_turns", Value: 3})
	p.resume()
	p.answer(says("done"))
	if o := p.outcome(); o.Reason != event.ReasonFinalAnswer || o.Cycles != 3 {
		t.Errorf("%+v", o)
	}
	p.check()
}

func TestARunThatAsksAtItsLimitCanBeCancelled(t *testing.T) {
	p := turned(t, agent.BudgetAsk)
	p.cancel()
	if o := p.outcome(); o.Reason != event.ReasonCancelled {
		t.Errorf("%+v", o)
	}
}
