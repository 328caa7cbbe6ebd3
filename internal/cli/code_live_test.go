package cli

import (
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// drawn matches the sequences of a live region.
var drawn = regexp.MustCompile("\x1b\\[[?0-9;]*[A-Za-z]")

// text is what a live region wrote, without its sequences.
func (y *typist) text() string { return drawn.ReplaceAllString(y.seen(), "") }

// keys says how a question is answered in a live region.
const keys = "[y]es, once"

// inRegion starts a session and waits for its input.
func (p project) inRegion(args ...string) (*typist, *startedProcess) {
	p.t.Helper()
	y, s := p.atTerminal([]string{"TERM=xterm"}, append([]string{"code"}, args...)...)
	p.eventually("it waits for a message", func() bool { return strings.Contains(y.text(), "> ") })
	return y, s
}

// A person works in two processes on one session: the first is killed at the question
// about the second message, and the second asks it again.
func TestALiveSessionGoesOnAfterAKill(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": shellTurn("touch touched") + "- text: the end\n",
	})
	y, s := p.inRegion("--agent", "agent.yaml")
	var ids []string
	for i, message := range []string{"first", "second"} {
		y.types(message + "\r")
		p.eventually("it asks", func() bool { return strings.Contains(y.frame(), keys) })
		ids = append(ids, p.newest())
		if i == 0 {
			p.answers(y, "y", func() bool { return p.row(ids[0]).State == journal.Ended })
		}
	}
	_ = s.Process.Signal(syscall.SIGKILL)
	s.wait()
	y, s = p.inRegion("--resume", ids[1])
	p.answers(y, "y", func() bool { return p.row(ids[1]).State == journal.Ended })
	p.eventually("it shows the end", func() bool { return strings.Count(y.text(), "the end") >= 2 })
	for _, text := range []string{"first", "second"} {
		if !strings.Contains(y.text(), text) {
			t.Errorf("it does not show %q: %q", text, y.text())
		}
	}
	y.types("\x04")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
	if ids[0] == ids[1] {
		t.Error("the second message has no run of its own")
	}
}

// answers presses a key at a question, and waits until that has an effect.
func (p project) answers(y *typist, key string, counts func() bool) {
	p.t.Helper()
	p.eventually("keys count", func() bool { return strings.Contains(y.frame(), keys) })
	y.types(key)
	p.eventually("the answer "+key+" counts", counts)
}

// frame is the last frame of a live region.
func (y *typist) frame() string {
	all := y.seen()
	return drawn.ReplaceAllString(all[max(strings.LastIndex(all, "\x1b[?2026h"), 0):], "")
}

// Both kinds of messages to a run that works are in the journal at once: they survive a
// kill, are shown again, and are read in their turn.
func TestMessagesToARunThatWorksSurviveAKill(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("touch begun; while [ ! -e go ]; do sleep 0.01; done") + "- text: the answer\n- text: the second answer\n",
	})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("work\r")
	p.eventually("the call runs", p.exists("begun"))
	first := p.newest()
	y.types("steer\r")
	p.eventually("the message is shown", func() bool { return strings.Contains(y.frame(), "↳ steer") })
	y.types("wait\x1b\r")
	p.eventually("the later one is shown", func() bool { return strings.Contains(y.frame(), "⇣ wait") })
	y.types("\x1b[A")
	p.eventually("it is in the input", func() bool { return strings.Contains(y.frame(), "> wait") })
	y.types("ed\r")
	p.eventually("it is changed", func() bool { return strings.Contains(y.frame(), "⇣ waited") })
	_ = s.Process.Signal(syscall.SIGKILL)
	s.wait()
	p.write("go", "")

	y, s = p.inRegion("--resume", first)
	p.eventually("they are shown again", func() bool {
		return strings.Contains(y.frame(), "↳ steer") && strings.Contains(y.frame(), "⇣ waited")
	})
	y.types("\r")
	p.eventually("the later one has a run of its own", func() bool {
		newest := p.newest()
		return newest != first && p.row(newest).State == journal.Ended
	})
	y.types("\x04")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
	for _, said := range []string{"> steer", "> waited"} {
		if !strings.Contains(y.text(), said) {
			t.Errorf("%q is not shown as read: %q", said, y.text())
		}
	}
	inputs := of[event.InputReceived](p.events(p.pawl("runs", "events", first, "--json").out))
	if len(inputs) != 3 || inputs[0].Text != "steer" || !inputs[1].Later || inputs[2].Replaces != inputs[1].Command || inputs[2].Text != "waited" {
		t.Errorf("the journal has %+v", inputs)
	}
}

// The mode is in the journal: of the run that it is switched in, and of those after it.
func TestShiftTabSwitchesTheModeOfThePermissions(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": writeTurn("docs/a.md") + "- text: the end\n",
	})
	y, s := p.inRegion("--agent", "agent.yaml")
	says := func(mode string) {
		t.Helper()
		y.types("\x1b[Z")
		p.eventually("the mode is "+mode, func() bool { return strings.Contains(y.frame(), mode) })
	}
	decided := func(message string) event.Decision {
		t.Helper()
		y.types(message + "\r")
		p.eventually("it is sent", func() bool { return y.shown(message) })
		p.eventually("it is answered", func() bool { return p.row(p.newest()).State == journal.Ended })
		return of[event.PolicyDecision](p.events(p.pawl("runs", "events", p.newest(), "--json").out))[0].Decision
	}
	says("accept-edits")
	if got := decided("write it"); got != event.DecisionAllow || !p.exists("docs/a.md")() {
		t.Errorf("accept-edits: the call is decided as %s", got)
	}
	says("plan")
	if got := decided("write it again"); got != event.DecisionDeny {
		t.Errorf("plan: the call is decided as %s", got)
	}
	first := p.newest()
	y.types("\x04")
	s.wait()
	y, s = p.inRegion("--resume", first)
	p.eventually("the mode is there again", func() bool { return strings.Contains(y.frame(), "plan") })
	says("> ")
	y.types("ask me\r")
	p.eventually("it asks", func() bool { return strings.Contains(y.frame(), keys) })
	says("accept-edits")
	p.answers(y, "y", func() bool { return p.row(p.newest()).State == journal.Ended })
	switched := of[event.InputReceived](p.events(p.pawl("runs", "events", p.newest(), "--json").out))
	if len(switched) != 1 || switched[0].Mode != "accept-edits" {
		t.Errorf("the journal has %+v", switched)
	}
	y.types("\x04")
	s.wait()
}

func TestWithoutALiveRegionNothingIsDrawnAgain(t *testing.T) {
	for flag, env := range map[string]string{"--plain": "TERM=xterm", "--model=scripted/script.yaml": "TERM=dumb"} {
		t.Run(env, func(t *testing.T) {
			p := newProject(t, map[string]string{"agent.yaml": shellAgent, "script.yaml": "- text: the answer\n"})
			y, s := p.atTerminal([]string{env}, "code", flag, "--agent", "agent.yaml")
			p.eventually("it waits for a message", func() bool { return strings.HasSuffix(y.plain(), "> ") })
			y.types("go\n")
			p.eventually("it answers", func() bool { return strings.Contains(y.plain(), "the answer") && strings.HasSuffix(y.plain(), "> ") })
			y.types("\x04")
			if f := s.wait(); f.code != 0 {
				t.Errorf("it exits with %d: %q", f.code, y.seen())
			}
			if strings.Contains(y.seen(), "\x1b[?") || env == "TERM=dumb" && strings.Contains(y.seen(), "\x1b") {
				t.Errorf("it draws: %q", y.seen())
			}
		})
	}
}

func TestTextOfAModelDoesNotSteerTheTerminalOfASession(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": shellAgent, "script.yaml": "- text: \"one \\e[2Jtwo\\e]52;c;eA==\\a \\e[3Jend\"\n"})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("go\r")
	p.eventually("it answers", func() bool { return strings.Contains(y.text(), "[3Jend") })
	y.types("\x04")
	s.wait()
	for _, sequence := range []string{"\x1b[2J", "\x1b[3J", "\x1b]52"} {
		if strings.Contains(y.seen(), sequence) {
			t.Errorf("%q reaches the terminal: %q", sequence, y.seen())
		}
	}
	if !strings.Contains(y.seen(), "⟨U+001B⟩[2J") {
		t.Errorf("it is not shown what the text had: %q", y.seen())
	}
}

func TestKeysParkTheRunAndEndTheSession(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- {text: slow, delay: 1h}\n- text: done\n"})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("go\r")
	p.eventually("the message is sent", func() bool { return y.shown("go") })
	id := p.newest()
	p.eventually("the model is asked", func() bool { return strings.Contains(y.frame(), "waiting for the model") })
	y.types("\x1b")
	p.eventually("Esc parks", func() bool { return p.row(id).State == journal.Parked && strings.Contains(y.text(), "interrupted") })
	y.types("\x03")
	p.eventually("Ctrl-C says how it goes on", func() bool { return strings.Contains(y.text(), "code --resume "+id) })
	y.types("\x03")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
	if !strings.HasSuffix(strings.TrimSuffix(y.seen(), "\x1b[?1004l\x1b[?2004l"), "\x1b[?2026l") || !strings.Contains(y.seen(), "\x1b[?25h") {
		t.Errorf("the terminal is left as %q", y.seen()[max(len(y.seen())-200, 0):])
	}
}

func TestTheEditorHasTheTerminalOfASessionToItself(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": shellTurn("touch touched") + "- text: the end\n",
		"editor.sh":   "[ -t 0 ] || exit 9; stty -a | grep -q ' icanon' || exit 8; echo editing what; read -r answer; echo '{\"command\": \"touch edited\"}' > \"$1\"\n",
	})
	y, s := p.atTerminal([]string{"TERM=xterm", "EDITOR=sh editor.sh"}, "code", "--agent", "agent.yaml")
	p.eventually("it waits for a message", func() bool { return strings.Contains(y.text(), "> ") })
	y.types("go\r")
	p.answers(y, "e", func() bool { return strings.Contains(y.text(), "editing what") })
	y.types("good\n")
	p.eventually("the edited call has run", func() bool { return p.exists("edited")() && p.row(p.newest()).State == journal.Ended })
	y.types("\x04")
	if f := s.wait(); f.code != 0 || p.exists("touched")() {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
}
