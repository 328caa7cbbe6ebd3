package main

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// The whole way: a file that asks at a limit, a run that parks, and the raise
// that lets it go on.
func TestARunThatAsksAtALimitGoesOnWhenItIsRaised(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent +
			"budgets: {max_model_turns: 1, actions: {max_model_turns: ask}}\n",
		"script.yaml": shellTurn("echo hi") + "- text: done\n",
	})
	f := p.exits(4, "run", "agent.yaml", "go")
	if want := "max_model_turns VALUE --resume"; !strings.Contains(f.err, want) {
		t.Errorf("the owner is not told %q: %s", want, f.err)
	}
	f = p.exits(0, "runs", "budget", p.newest(), "max_model_turns", "5", "--resume", "--json")
	done := of[event.RunCompleted](p.events(f.out))
	if len(done) != 1 || done[0].Outcome.Reason != event.ReasonFinalAnswer || done[0].Outcome.FinalOutput != "done" {
		t.Errorf("%+v: %s", done, f.out)
	}
}
