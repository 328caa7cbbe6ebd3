package cli

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// commandLines returns lines of a session, before its first message and after its answer,
// with what they print. What they print is not in the line, which the input shows at once.
func commandLines() (before, after [][2]string) {
	return [][2]string{
			{"/help", "/export"},
			{"/tools", "shell.exec"},
			{"/mcp", "the file has no MCP servers"},
			{"/cost", "send a message first"},
			{"/compact", "send a message first"},
			{"/approve-mode", "mode: default"},
			{"/approve-mode wild", "it can be default"},
			{"/model", "that of the agent file"},
			{"/model x", "no model"},
		}, [][2]string{
			{"/cost", "state     ended: final_answer"},
			{"/context", "tokens; the window of the model scripted/script.yaml is not known"},
			{"/diff", "fewer than two runs"},
			{"/fork", "/fork CYCLE goes on from the end of one"},
			{"/export", "write /export FILE"},
			{"/export out.zip", "out.zip: 1 run"},
			{"/resume", "1 runs  Review the parser"},
			{"/resume none", "no run"},
			{"/plan", "mode: plan"},
			{"/approve-mode default", "mode: default"},
			{"/compact", "is shortened before the next message"},
			{"/model scripted/other.yaml", "model: scripted/other.yaml"},
			{"/nonsense", "there is no command /nonsense"},
			{"!echo of  a user", "of a user"},
			{"see @none.png", "no such file"},
		}
}

func commandsProject(t *testing.T) project {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent, "script.yaml": "- text: the answer\n", "other.yaml": "- text: the other answer\n",
	})
	if err := os.MkdirAll(filepath.Join(p.dir, ownCommands), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(ownCommands+"/review.md", "Review $ARGUMENTS with care.\n")
	return p
}

func TestCommandsOfASession(t *testing.T) {
	before, after := commandLines()
	p := commandsProject(t)
	y, s := p.inRegion("--agent", "agent.yaml")
	says := func(lines [][2]string) {
		t.Helper()
		for _, line := range lines {
			from := len(y.seen())
			y.types("\x15" + line[0] + "\r")
			p.eventually(line[0]+" says "+line[1], func() bool { return strings.Contains(drawn.ReplaceAllString(y.seen()[from:], ""), line[1]) })
		}
	}
	says(before)
	y.types("\x15/review the parser\r")
	p.eventually("the user's command is a message", func() bool { return strings.Contains(y.text(), "> Review the parser with care.") })
	p.eventually("it is answered", func() bool {
		return strings.Contains(y.text(), "the answer") && p.row(p.newest()).State == journal.Ended
	})
	says(append(after, [2]string{"/copy", "sent to the clipboard"}))
	if !strings.Contains(y.seen(), "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte("the answer"))+"\a") {
		t.Error("the answer is not in the clipboard")
	}
	y.types("\x04")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
}

// Lines without a live region have the same commands.
func TestCommandsOfASessionWithoutALiveRegion(t *testing.T) {
	before, after := commandLines()
	p := commandsProject(t)
	y, s := p.atTerminal(nil, "code", "--plain", "--agent", "agent.yaml")
	waits := func() bool { return strings.HasSuffix(y.plain(), "> ") }
	p.eventually("it waits for a message", waits)
	for _, line := range append(append(before, [2]string{"/review the parser", "the answer"}), append(after, [2]string{"/copy", "clipboard"})...) {
		from := len(y.plain())
		y.types(line[0] + "\n")
		p.eventually(line[0]+" says "+line[1], func() bool { return strings.Contains(y.plain()[from:], line[1]) && waits() })
	}
	y.types("\x04")
	if f := s.wait(); f.code != 0 {
		t.Errorf("it exits with %d: %q", f.code, y.seen())
	}
}

// A model or mode that is chosen between two messages holds for the next run, also in another process.
func TestChoicesSurviveTheirProcess(t *testing.T) {
	p := commandsProject(t)
	p.exits(0, "code", "--agent", "agent.yaml", "-p", "one")
	first := p.newest()
	y, s := p.inRegion("--resume", first)
	for _, line := range [][2]string{{"/model scripted/other.yaml", "from the next run on"}, {"/compact", "is shortened before"}, {"/plan", "mode: plan"}} {
		y.types(line[0] + "\r")
		p.eventually(line[0], func() bool { return strings.Contains(y.text(), line[1]) })
	}
	y.types("\x04")
	s.wait()
	y, s = p.inRegion("--resume", first)
	p.eventually("the status line has them", func() bool {
		return strings.Contains(y.frame(), "plan · scripted/other.yaml")
	})
	y.types("\x04")
	s.wait()
	configs := func(message string) (c agent.Config) {
		t.Helper()
		p.exits(0, "code", "--resume", first, "-p", message)
		started, _ := p.started(p.newest())
		if err := json.Unmarshal(started.Config, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := configs("two"); c.Targets[0].Model != "scripted/other.yaml" || !c.CompactNow || c.Policy.Mode != policy.ModePlan {
		t.Errorf("the next run has the model %s, the mode %q, and compacts: %t", c.Targets[0].Model, c.Policy.Mode, c.CompactNow)
	}
	if c := configs("three"); c.Targets[0].Model != "scripted/other.yaml" || c.CompactNow || c.Policy.Mode != policy.ModePlan {
		t.Errorf("the run after it has the model %s, the mode %q, and compacts: %t", c.Targets[0].Model, c.Policy.Mode, c.CompactNow)
	}
	p.exits(0, "code", "--resume", first, "--model", "scripted/script.yaml", "-p", "four")
	if started, _ := p.started(p.newest()); !strings.Contains(string(started.Config), "scripted/script.yaml") {
		t.Errorf("--model is not used: %s", started.Config)
	}
}

// A message takes along the images that it names, with and without a live region.
func TestImagesThatAMessageNamesAreSent(t *testing.T) {
	p := commandsProject(t)
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	p.write("my photo.png", string(png))
	sent := func() int {
		started, _ := p.started(p.newest())
		n := 0
		for _, part := range started.Input.Parts {
			if _, is := part.(llm.Media); is {
				n++
			}
		}
		return n
	}
	p.exits(0, "code", "--agent", "agent.yaml", "-p", `see @"my photo.png"`)
	if n := sent(); n != 1 {
		t.Errorf("-p sends %d images", n)
	}
	y, s := p.inRegion("--agent", "agent.yaml")
	before := p.newest()
	y.types("\x1b[200~'" + filepath.Join(p.dir, "my photo.png") + "'\x1b[201~\r")
	p.eventually("it is answered", func() bool { return p.newest() != before && p.row(p.newest()).State == journal.Ended })
	if n := sent(); n != 1 {
		t.Errorf("a pasted path sends %d images", n)
	}
	y.types("\x04")
	s.wait()
}
