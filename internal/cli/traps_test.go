package cli

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// Two of the mistakes of other agents that are about whole runs; the others are in
// launch, internal/machine/agent and hook.

// What asks in the foreground was allowed in the background.
func TestADetachedRunAsksLikeAnyOther(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": shellTurn("touch touched") + "- text: the end\n"})
	id := strings.TrimSpace(p.exits(0, "run", "agent.yaml", "go", "--detach").out)
	p.eventually("it parks", func() bool { return p.row(id).State == journal.Parked })
	if p.exists("touched")() {
		t.Error("a gated call ran in the background")
	}
	p.exits(0, "runs", "approve", id, "1-1", "--resume")
	if !p.exists("touched")() {
		t.Error("the approved call did not run")
	}
}

// What stands on a run escaped what that run was denied. A file that
// was loosened meanwhile loosens only the runs that begin with it.
func TestWhatStandsOnARunKeepsItsDenials(t *testing.T) {
	const denied = "tools: {allow: [shell.exec], rules: [{deny: shell.exec, command: \"touch *\"}]}\n"
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent + denied,
		"script.yaml": strings.Repeat(shellTurn("touch touched")+"- text: the end\n", 2),
	})
	p.exits(0, "run", "agent.yaml", "go")
	id := p.newest()
	p.write("agent.yaml", gatedAgent+"tools: {allow: [shell.exec]}\n")
	for _, verb := range [][]string{
		{"run", "--continue", id, "once more"},
		{"runs", "fork", id, "--seq", "2"},
	} {
		f := p.exits(0, append(verb, "--json")...)
		if !strings.Contains(f.out, `"decision":"deny","rule":"tools.rules: deny shell.exec, command touch *"`) || p.exists("touched")() {
			t.Errorf("%v: %s", verb, f.out)
		}
	}
	p.exits(0, "run", "agent.yaml", "go")
	if !p.exists("touched")() {
		t.Error("the file itself was not loosened, so this test shows nothing")
	}
}
