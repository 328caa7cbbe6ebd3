package cli

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// The server's default address is that of RondoFlow's, on this machine alone.
//
// rows: RON-67
func TestTheServerListensOnPort3001(t *testing.T) {
	serve, _, err := new(app).rootCommand().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	if addr := serve.Flag("addr").DefValue; addr != "127.0.0.1:3001" {
		t.Errorf("it listens on %s", addr)
	}
}

// Inside a loop nothing asks: what the file allows runs, and nothing else is there. Only
// the manual criterion waits for a person.
//
// rows: RON-68
func TestInsideALoopNothingAsks(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": "identity: {name: looper}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write]}\n" +
			"loop: {loopEnabled: true, maxIterations: 2, loopCriteria: {type: manual}}\n",
		"script.yaml": "- tool_calls:\n    - {name: fs.write, arguments: {path: made, content: x}}\n    - {name: shell.exec, arguments: {command: touch escaped}}\n" +
			"    - {name: fs.read, arguments: {path: agent.yaml}}\n- text: done\n",
	})
	p.exits(4, "run", "agent.yaml", "Try.")
	root := p.newestRoot()
	events := p.events(p.exits(0, "runs", "events", root, "--tree").out)
	if asked := of[event.ToolPendingApproval](events); len(asked) > 0 {
		t.Errorf("a call asks: %+v", asked)
	}
	if r := of[event.ReviewRequested](events); len(r) != 1 || r[0].LoopID != "review-1" {
		t.Errorf("the reviews are %+v", r)
	}
	var how []string
	for _, r := range of[event.ToolResult](events) {
		how = append(how, r.Tool+" "+string(r.ErrorType))
	}
	slices.Sort(how)
	if want := []string{"fs.read unknown_tool", "fs.write ", "shell.exec unknown_tool"}; !slices.Equal(how, want) {
		t.Errorf("the calls ended as %q, want %q", how, want)
	}
	if !p.exists("made")() || p.exists("escaped")() {
		t.Errorf("made: %t, escaped: %t", p.exists("made")(), p.exists("escaped")())
	}
}
