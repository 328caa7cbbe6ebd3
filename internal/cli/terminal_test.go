package cli

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// typist is a person at a terminal on which a command runs.
type typist struct {
	t      *testing.T
	file   *os.File
	screen transcript
	done   chan struct{}
}

// atTerminal starts a command with a terminal as all of its streams.
func (p project) atTerminal(env []string, args ...string) (*typist, *startedProcess) {
	p.t.Helper()
	return p.atTerminalOf(80, env, args...)
}

// atTerminalOf is atTerminal with a number of columns.
func (p project) atTerminalOf(columns uint16, env []string, args ...string) (*typist, *startedProcess) {
	p.t.Helper()
	s := &startedProcess{Cmd: p.command(args...), t: p.t, out: new(transcript), err: new(transcript)}
	s.Env = append(append(s.Env, "TERM=xterm", "NO_COLOR=", "VISUAL=", "EDITOR="), env...)
	file, err := pty.StartWithSize(s.Cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		p.t.Fatal(err)
	}
	y := &typist{t: p.t, file: file, done: make(chan struct{})}
	s.screen = y.done
	go y.watch()
	p.t.Cleanup(func() { file.Close() })
	return y, s
}

func (y *typist) watch() {
	defer close(y.done)
	_, _ = io.Copy(&y.screen, y.file) // a terminal without a holder ends with an error
}

func (y *typist) seen() string { return y.screen.String() }

// plain is what was seen, without colours.
func (y *typist) plain() string { return escape.ReplaceAllString(y.seen(), "") }

func (y *typist) types(text string) {
	y.t.Helper()
	if _, err := y.file.WriteString(text); err != nil {
		y.t.Fatal(err)
	}
}

const gatedAgent = "identity: {name: careful}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n"

func TestOnATerminalAGatedCallIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name, types, last string
		exists            bool
	}{
		{"yes", "y\n", "exit code: 0", true},
		{"no", "n\n", "declined", false},
		{"no, and why", "n not on a Friday\n", "not on a Friday", false},
		{"no, and why, as a sentence", "No, not on a Friday\n", "not on a Friday", false},
		{"something else, and after that yes", "yo\nyes please\nnope\ny\n", "exit code: 0", true},
		{"something else, and after that no", "never mind\nn\n", "declined", false},
		{"with other arguments", "e\n{\"command\": \n{\"command\": \"touch edited\"}\n", "changed the arguments of this call to", false},
		{"with arguments that the tool refuses, and after that with others", "e\n{\"comand\": \"x\"}\n{\"command\": \"touch edited\"}\n", "changed the arguments of this call to", false},
		{"what is no text, and after that no", "n caf\xe9\nn caf\u00e9\n", "caf\u00e9", false},
		{"with other arguments, and after all with its own", "e\n\ny\n", "exit code: 0", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, map[string]string{
				"agent.yaml":  gatedAgent,
				"script.yaml": shellTurn("touch touched") + "- text: the end\n  expect: {last: [\"" + tt.last + "\"]}\n",
			})
			y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
			p.eventually("it asks", func() bool { return strings.Contains(y.seen(), prompt) })
			if !strings.Contains(y.seen(), `-1-1: shell.exec {"command":"touch touched"}?`) {
				t.Errorf("the question does not show the call: %q", y.seen())
			}
			if !strings.Contains(y.plain(), "asked by default: side effects ask, because the agent file names no tools.allow") {
				t.Errorf("the question does not show which rule asks: %q", y.seen())
			}
			y.types(tt.types)
			f := s.wait()
			<-y.done
			if f.code != 0 || !strings.Contains(y.seen(), "the end\r\n") {
				t.Errorf("exit code %d: %q", f.code, y.seen())
			}
			if p.exists("touched")() != tt.exists {
				t.Errorf("the call ran: %t", !tt.exists)
			}
			if strings.Contains(tt.name, "refuses") && !strings.Contains(y.plain(), "the arguments of shell.exec do not fit its schema") {
				t.Errorf("it is not said why the arguments were refused: %q", y.seen())
			}
			if strings.Contains(tt.name, "no text") && !strings.Contains(y.plain(), "the answer is not UTF-8") {
				t.Errorf("it is not said why the answer was not taken: %q", y.seen())
			}
			if strings.Contains(tt.name, "something else") && !strings.Contains(y.seen(), "\"n REASON\" to tell the model why") {
				t.Errorf("it is not said how to answer: %q", y.seen())
			}
		})
	}
}

// prompt is the end of a question.
const prompt = "[y]es, [n]o, n and a reason, [a]llow, [e]dit: "

// threeCalls is an answer that asks for three calls, each of which touches a
// file of its own.
func threeCalls(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml": gatedAgent,
		"script.yaml": "- tool_calls:\n" +
			"  - {name: shell.exec, arguments: {command: touch one}}\n" +
			"  - {name: shell.exec, arguments: {command: touch two}}\n" +
			"  - {name: shell.exec, arguments: {command: touch three}}\n" +
			"- text: the end\n",
	})
}

// questions are the commands of the calls that were asked about, in the order
// in which the screen shows them.
func (y *typist) questions() []string {
	var found []string
	for _, m := range regexp.MustCompile(`approve \w+-(1-\d): shell.exec \{"command":"touch (\w+)"\}\?`).FindAllStringSubmatch(y.seen(), -1) {
		found = append(found, m[1]+" "+m[2])
	}
	return found
}

// rows: ALDO-62
func TestSeveralCallsAreAskedAboutOneAfterTheOther(t *testing.T) {
	p := threeCalls(t)
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	for i, answer := range []string{"y\n", "n\n", "y\n"} {
		p.eventually("it asks", func() bool { return strings.Count(y.seen(), prompt) == i+1 })
		y.types(answer)
	}
	if f := s.wait(); f.code != 0 {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
	<-y.done
	if got, want := y.questions(), []string{"1-1 one", "1-2 two", "1-3 three"}; !slices.Equal(got, want) {
		t.Errorf("asked about %q, want %q", got, want)
	}
	if !p.exists("one")() || p.exists("two")() || !p.exists("three")() {
		t.Errorf("other calls ran than were approved: %q", y.seen())
	}
	for line := range strings.Lines(y.plain()) {
		if before, typed, asked := strings.Cut(line, prompt); asked && (before != "  " || len(strings.TrimSpace(typed)) != 1) {
			t.Errorf("something is written into the question: %q", line)
		}
	}
}

// An answer to a question that is gone is ignored.
func TestAnAnswerToAQuestionThatIsGoneIsNotTakenForTheNextOne(t *testing.T) {
	p := threeCalls(t)
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Count(y.seen(), prompt) == 1 })
	y.types("y") // and before the line ends:
	p.exits(0, "runs", "reject", p.newest(), "1-1", "--reason", "from elsewhere")
	p.eventually("the question is taken back", func() bool { return strings.Contains(y.plain(), prompt+"y (no answer is needed any more)\r\n") })
	for i, answer := range []string{"\n", "n\n", "n\n"} {
		p.eventually("it asks again", func() bool { return strings.Count(y.seen(), prompt) == i+2 })
		y.types(answer)
	}
	if f := s.wait(); f.code != 0 {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
	if p.exists("one")() || p.exists("two")() || p.exists("three")() {
		t.Errorf("a call ran that nobody approved: %q", y.seen())
	}
}

func TestADecisionFromElsewhereEndsTheQuestion(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": shellTurn("touch touched") + "- text: the end\n"})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), "[y]es") })
	p.exits(0, "runs", "approve", p.newest(), "1-1")
	if f := s.wait(); f.code != 0 || !p.exists("touched")() {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}

// It does not pause before the question is answered, and says so.
func TestAPauseSentToAQuestionIsSeenToCome(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": shellTurn("touch touched") + "- text: the end\n"})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), "[y]es") })
	id := p.newest()
	if f := p.exits(0, "runs", "pause", id); !strings.Contains(f.out, "the run pauses when its current call has finished") {
		t.Errorf("pause says %q", f.out)
	}
	if f := p.exits(0, "runs"); !strings.HasPrefix(f.out, id+"  waiting: approval_required, pausing  ") {
		t.Errorf("it is listed as %q", f.out)
	}
	y.types("y\n")
	if f := s.wait(); f.code != 4 || !p.exists("touched")() {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
	if f := p.exits(0, "runs"); !strings.HasPrefix(f.out, id+"  paused  ") {
		t.Errorf("it is listed as %q", f.out)
	}
}

func TestCtrlCAtAQuestionParksTheRun(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": shellTurn("touch touched") + "- text: the end\n"})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), "[y]es") })
	y.types("\x03")
	if f := s.wait(); f.code != 130 {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
	p.exits(0, "runs", "resume", p.newest(), "--approve", "all")
	if !p.exists("touched")() {
		t.Error("the call did not run")
	}
}

var escape = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestATerminalShowsALiveLineAndTheAnswerOnce(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": "- {text: the answer, delay: 100ms}\n",
	})
	y, s := p.atTerminal(nil, "run", "agent.yaml", "go")
	s.wait()
	<-y.done
	seen := y.seen()
	if !escape.MatchString(seen) {
		t.Errorf("no colour: %q", seen)
	}
	plain := escape.ReplaceAllString(seen, "")
	if !strings.Contains(plain, "cycle 1/50 ░░░░░░░░░░ · waiting for the model") || !strings.Contains(plain, "\r\x1b[K") {
		t.Errorf("no live line: %q", plain)
	}
	if n := strings.Count(plain, "the answer\r\n"); n != 1 {
		t.Errorf("the answer stands there %d times: %q", n, plain)
	}
}

func TestColourAndTheLiveLineCanBeSwitchedOff(t *testing.T) {
	for env, want := range map[string]struct{ colour, live bool }{
		"NO_COLOR=1": {colour: false, live: true},
		"TERM=dumb":  {colour: false, live: false},
	} {
		t.Run(env, func(t *testing.T) {
			p := newProject(t, map[string]string{"agent.yaml": shellAgent, "script.yaml": "- text: the answer\n"})
			y, s := p.atTerminal([]string{env}, "run", "agent.yaml", "go")
			s.wait()
			<-y.done
			if got := escape.MatchString(y.seen()); got != want.colour {
				t.Errorf("colour %t: %q", got, y.seen())
			}
			if got := strings.Contains(y.seen(), "\x1b[K"); got != want.live {
				t.Errorf("live line %t: %q", got, y.seen())
			}
		})
	}
}
