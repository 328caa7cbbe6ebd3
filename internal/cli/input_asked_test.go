package cli

import (
	"strings"
	"testing"
)

// forgetful is an agent whose task is an argument of its run.
var forgetful = map[string]string{
	"agent.yaml":  "identity: {name: forgetful}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n",
	"script.yaml": "- expect: {last: Tidy up.}\n  tool_calls: [{name: fs.write, arguments: {path: tidy.txt, content: tidied}}]\n- text: the end\n",
}

// What is typed then still answers the run's own questions.
func TestAForgottenInputIsAskedForAtATerminal(t *testing.T) {
	p := newProject(t, forgetful)
	y, s := p.atTerminal(nil, "run", "agent.yaml")
	p.eventually("the input is asked for", func() bool { return strings.Contains(y.plain(), "input: ") })
	y.types("  \r")
	p.eventually("it is asked for again", func() bool { return strings.Count(y.plain(), "input: ") == 2 })
	y.types("Tidy up.\r")
	p.eventually("the call is asked about", func() bool { return strings.Contains(y.plain(), "[n]o") })
	y.types("y\r")
	if f := s.wait(); f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, y.plain())
	}
	if p.read("tidy.txt") != "tidied" {
		t.Error("the answer did not reach the call")
	}
	if events := p.exits(0, "runs", "events", p.newest()).out; !strings.Contains(events, `"text":"Tidy up."`) {
		t.Errorf("the run was told otherwise:\n%s", events)
	}
}

func TestMissingInputIsReported(t *testing.T) {
	p := newProject(t, forgetful)
	y, s := p.atTerminal(nil, "run", "agent.yaml")
	p.eventually("the input is asked for", func() bool { return strings.Contains(y.plain(), "input: ") })
	y.types("\x04")
	if f := s.wait(); f.code != exitUsage || !strings.Contains(y.plain(), "INPUT is missing") {
		t.Errorf("exit code %d: %s", f.code, y.plain())
	}
	if p.exists(".pawl")() {
		t.Error("something has begun")
	}
}
