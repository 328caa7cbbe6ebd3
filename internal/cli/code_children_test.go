package cli

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// teamFiles are an agent whose two subagents ask about a command each.
func teamFiles() map[string]string {
	files := map[string]string{
		"agent.yaml": "identity: {name: lead}\nmodel_policy: {primary: {model: scripted/lead.script}}\ntools:\n  agents:\n" +
			"  - {name: left, description: Works left., file: left.yaml, concurrent: true}\n" +
			"  - {name: right, description: Works right., file: right.yaml, concurrent: true}\n",
		"lead.script": "- tool_calls: [{name: left, arguments: {task: go}}, {name: right, arguments: {task: go}}]\n- text: both are done\n",
	}
	for _, name := range []string{"left", "right"} {
		files[name+".yaml"] = "identity: {name: " + name + "}\nmodel_policy: {primary: {model: scripted/" + name + ".script}}\n" +
			"tools: {allow: [shell.exec], approvals: {shell.exec: always}}\n"
		files[name+".script"] = shellTurn("touch "+name+"; until [ -e go ]; do sleep 0.01; done") + "- text: the end\n"
	}
	return files
}

func TestQuestionsAndWorkOfChildrenAreShown(t *testing.T) {
	p := newProject(t, teamFiles())
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("go\r")
	p.eventually("two questions are a list", func() bool {
		f := y.frame()
		return strings.Contains(f, "then: ") && strings.Contains(f, "the call of") && strings.Contains(f, "2 questions")
	})
	p.answers(y, "y", func() bool { return p.exists("left")() || p.exists("right")() })
	p.answers(y, "y", func() bool { return p.exists("left")() && p.exists("right")() })
	p.eventually("the work of both is shown", func() bool {
		return strings.Contains(y.frame(), "left: → run") && strings.Contains(y.frame(), "right: → run")
	})
	p.write("go", "")
	p.eventually("it answers", func() bool { return strings.Contains(y.text(), "both are done") })
	y.types("\x04")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
}

// The rule that a person allows holds for the messages after it, in any process.
func TestARuleHoldsForTheSession(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": writeTurn("docs/a.md") + "- text: the end\n"})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("first\r")
	p.eventually("it asks for the session", func() bool { return strings.Contains(y.text(), "allows for this session: fs.write, path docs/*") })
	first := p.newest()
	p.answers(y, "a", func() bool { return p.row(first).State == journal.Ended })
	y.types("second\r")
	p.eventually("the second message is answered", func() bool { return p.newest() != first && p.row(p.newest()).State == journal.Ended })
	y.types("\x04")
	s.wait()
	for _, message := range []string{"", "third"} {
		if message != "" {
			p.exits(0, "code", "--resume", first, "-p", message)
		}
		decided := of[event.PolicyDecision](p.events(p.pawl("runs", "events", p.newest(), "--json").out))
		if len(decided) != 1 || decided[0].Decision != event.DecisionAllow || !strings.HasPrefix(decided[0].Rule, "allowed for this run") {
			t.Errorf("%q: the call is decided as %+v", message, decided)
		}
	}
	p.exits(4, "run", "--continue", first, "again") // it asks: this is not the session
}
