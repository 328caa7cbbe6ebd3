package cli

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// A person works in two processes on one session: the first is killed at the question
// about the second message, and the second asks it again.
func TestASessionAtTheTerminalGoesOnAfterAKill(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": shellTurn("touch touched") + "- text: the end\n",
	})
	y, s := p.atTerminal(nil, "code", "--plain", "--agent", "agent.yaml")
	p.eventually("it waits for a message", func() bool { return strings.HasSuffix(y.plain(), "> ") })
	var ids []string
	for i, message := range []string{"first", "second"} {
		y.types(message + "\n")
		p.eventually("it asks", func() bool { return strings.Count(y.seen(), prompt) == i+1 })
		ids = append(ids, p.newest())
		if i == 0 {
			y.types("y\n")
			p.eventually("it waits for the next message", func() bool { return strings.HasSuffix(y.plain(), "> ") })
		}
	}
	_ = s.Process.Signal(syscall.SIGKILL)
	s.wait()
	for _, word := range []string{"--resume", "--resume=last"} {
		args := []string{"code", "--plain", word}
		if word == "--resume" {
			args = append(args, ids[1])
		}
		y, s := p.atTerminal(nil, args...)
		if word == "--resume" {
			p.eventually("it asks again", func() bool { return strings.Count(y.seen(), prompt) == 1 })
			y.types("y\n")
		}
		p.eventually("it waits for a message", func() bool { return strings.HasSuffix(y.plain(), "> ") })
		for _, text := range []string{"first", "second", "the end"} {
			if !strings.Contains(y.plain(), text) {
				t.Errorf("%s: it does not show %q: %q", word, text, y.plain())
			}
		}
		y.types("\x04")
		if f := s.wait(); f.code != 0 {
			t.Errorf("%s: it exits with %d: %q", word, f.code, y.seen())
		}
	}
	for _, id := range ids {
		if row := p.row(id); row.State != journal.Ended {
			t.Errorf("run %s is %s", id, row.State)
		}
	}
}

func TestAMessageOfTheCommandLineContinuesASession(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- text: an answer\n"})
	p.exits(0, "code", "--agent", "agent.yaml", "-p", "one")
	first := p.newest()
	if got := p.exits(0, "code", "--resume", first, "-p", "two"); !strings.Contains(got.out, "an answer") {
		t.Errorf("it prints %q", got.out)
	}
	second := p.newest()
	got := p.exits(exitUsage, "code", "--resume")
	if !strings.HasPrefix(got.out, first+"  ") || !strings.Contains(got.out, "  2 runs  one\n") || !strings.Contains(got.err, "--resume "+first) {
		t.Errorf("it lists %q, and says %q", got.out, got.err)
	}
	if second == first {
		t.Error("the second message has no run of its own")
	}
	if got := p.exits(exitUsage, "code", "-p", "three"); !strings.Contains(got.err, "--agent FILE") {
		t.Errorf("without an agent file it says %q", got.err)
	}
}

// The cost limit of a process holds for the messages that it sends, also to an older session;
// without one they have that of the message before.
func TestTheCostLimitOfAResumedSession(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- text: an answer\n"})
	p.exits(0, "code", "--agent", "agent.yaml", "-p", "one")
	first := p.newest()
	for _, tt := range []struct {
		flags []string
		limit float64
	}{
		{[]string{"--budget", "2"}, 2},
		{nil, 2},
		{[]string{"--budget", "7"}, 7},
		{[]string{"--no-budget"}, 0},
	} {
		p.exits(0, append([]string{"code", "--resume", first, "-p", "next"}, tt.flags...)...)
		started, _ := p.started(p.newest())
		var c agent.Config
		if err := json.Unmarshal(started.Config, &c); err != nil || c.Limits.USDPerRun != tt.limit {
			t.Errorf("%v: the limit is USD %g, want %g; %v", tt.flags, c.Limits.USDPerRun, tt.limit, err)
		}
	}
}

func TestCtrlCParksASessionAndSaysHowItGoesOn(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- {text: slow, delay: 1h}\n- text: done\n"})
	s := p.start("code", "--agent", "agent.yaml", "-p", "go")
	p.eventually("it works", func() bool { return strings.Contains(p.pawl("runs", "log", "last").out, "go") })
	_ = s.Process.Signal(syscall.SIGINT)
	f := s.wait()
	if id := p.newest(); f.code != exitCancelled || !strings.Contains(f.err, "code --resume "+id) {
		t.Errorf("it exits with %d, and says %q", f.code, f.err)
	}
}
