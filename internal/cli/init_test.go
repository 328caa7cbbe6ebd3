package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/kinds"
)

// The commands that init prints are run as they stand, but for the last flag:
// where there is no sandbox, a command would ask.
func TestEachTemplateRunsAtOnceAndWithoutAKey(t *testing.T) {
	for _, tmpl := range kinds.Templates() {
		t.Run(tmpl.Name, func(t *testing.T) {
			p := newProject(t, nil)
			said := strings.Split(p.exits(0, "init", tmpl.Name, "--template", tmpl.Name).out, "\n")
			checked := p.exits(0, strings.Fields(said[2])[1:]...)
			if checked.err != "" {
				t.Errorf("check warns: %s", checked.err)
			}
			words := strings.SplitN(strings.TrimSpace(said[3]), " ", 3) // pawl run …
			out, err := exec.Command("sh", "-c", `printf '%s\n' `+words[2]).Output()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"run", "--json"}, strings.Split(strings.TrimSpace(string(out)), "\n")...)
			if tmpl.Name != "ask-first" {
				p.exits(0, append(args, "--approve", "all")...)
				return
			}
			events := p.events(p.exits(4, args...).out)
			pending := of[event.ToolPendingApproval](events)
			if _, err := os.Stat(filepath.Join(p.dir, "announcement.md")); err == nil || len(pending) != 1 {
				t.Fatalf("%d calls wait for a decision (%v)", len(pending), err)
			}
			p.exits(0, "runs", "approve", events[0].Run, pending[0].CallID, "--resume")
			if _, err := os.Stat(filepath.Join(p.dir, "announcement.md")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOnATerminalInitAsksForANameAndAModel(t *testing.T) {
	p := newProject(t, nil)
	y, s := p.atTerminal(nil, "init", "first")
	p.eventually("it asks for the name", func() bool { return strings.Contains(y.seen(), "name of the agent [first]: ") })
	y.types("helper\n")
	p.eventually("it asks for the model", func() bool { return strings.Contains(y.seen(), "model [scripted/answers.yaml]: ") })
	y.types("\n")
	if f := s.wait(); f.code != 0 {
		t.Fatalf("exit code %d: %q", f.code, y.seen())
	}
	<-y.done
	text, err := os.ReadFile(filepath.Join(p.dir, "first", "agent.yaml"))
	if err != nil || !strings.Contains(string(text), `name: "helper"`) || !strings.Contains(string(text), `model: "scripted/answers.yaml"`) {
		t.Errorf("%v\n%s", err, text)
	}
	if !strings.Contains(y.seen(), "pawl run first/agent.yaml") {
		t.Errorf("the next command is not shown: %q", y.seen())
	}
}

func TestInitAsksNothingThatAFlagSays(t *testing.T) {
	p := newProject(t, nil)
	y, s := p.atTerminal(nil, "init", "--name", "helper", "--model", "scripted/answers.yaml")
	if f := s.wait(); f.code != 0 || strings.Contains(y.seen(), "]: ") {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}
