package cli

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
	if want := "max_model_turns 2 --resume"; !strings.Contains(f.err, want) {
		t.Errorf("the owner is not told %q: %s", want, f.err)
	}
	f = p.exits(0, "runs", "budget", p.newest(), "max_model_turns", "5", "--resume", "--json")
	done := of[event.RunCompleted](p.events(f.out))
	if len(done) != 1 || done[0].Outcome.Reason != event.ReasonFinalAnswer || done[0].Outcome.FinalOutput != "done" {
		t.Errorf("%+v: %s", done, f.out)
	}
}

// A call that exceeds the limit is not refused: it waits for the raise and runs once,
// even if the run is resumed meanwhile.
func TestCallsWaitForTheRaiseAndRunOnce(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent + "budgets: {max_tool_calls: 1, actions: {max_tool_calls: ask}}\n",
		"script.yaml": "- tool_calls: [{name: shell.exec, arguments: {command: echo one >> said}}, {name: shell.exec, arguments: {command: echo two >> said}}, " +
			"{name: shell.exec, arguments: {command: echo three >> said}}]\n- {text: done, expect: {excludes: budget_exceeded}}\n",
	})
	p.exits(4, "run", "agent.yaml", "go")
	id := p.newest()
	shown := p.exits(0, "runs", "show", id).out
	for _, want := range []string{"because   max_tool_calls is used up; raise it to at least 2 or cancel the run", "continue  pawl runs budget " + id + " max_tool_calls 2 --resume"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not say %q:\n%s", want, shown)
		}
	}
	p.exits(4, "runs", "resume", id)
	before := p.exits(0, "runs", "events", id).out
	for _, resume := range [][]string{nil, {"--resume"}} {
		f := p.exits(2, append([]string{"runs", "budget", id, "max_tool_calls", "1"}, resume...)...)
		if want := "run " + id + " would park again at once: max_tool_calls must be at least 2 for the run to continue, or none"; !strings.Contains(f.err, want) {
			t.Errorf("the owner is not told %q: %s", want, f.err)
		}
	}
	if after := p.exits(0, "runs", "events", id).out; after != before {
		t.Errorf("a raise that was refused has left something:\n%s", after)
	}
	if listed := p.exits(0, "runs", "list").out; strings.Contains(listed, "answered") {
		t.Errorf("a run that would park again at once is answered:\n%s", listed)
	}
	p.exits(4, "runs", "budget", id, "max_tool_calls", "2", "--resume")
	p.exits(0, "runs", "budget", id, "max_tool_calls", "none", "--resume")
	if said := p.read("said"); said != "one\ntwo\nthree\n" {
		t.Errorf("the calls said %q", said)
	}
	if shown := p.exits(0, "runs", "show", id).out; strings.Contains(shown, "\ncontinue") {
		t.Errorf("a run that has ended is to go on:\n%s", shown)
	}
}

// A call that exceeds a limit is shown with its figures.
func TestReasonOfTheEndIsShown(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent + "failure_threshold: 2\n",
		"script.yaml": shellTurn("exit 3") + shellTurn("exit 4"),
	})
	const why = "because 2 calls failed in a row, the last with "
	if f := p.exits(1, "run", "agent.yaml", "go"); !strings.Contains(f.err, "ends "+why) {
		t.Errorf("the owner is not told %q: %s", why, f.err)
	}
	if shown := p.exits(0, "runs", "show", p.newest()).out; !strings.Contains(shown, "because   2 calls failed in a row") {
		t.Errorf("the page does not say why:\n%s", shown)
	}
}
