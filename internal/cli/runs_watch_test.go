package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// watchedFiles is an agent that asks before it writes.
var watchedFiles = map[string]string{
	"agent.yaml":  "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\napprovals: {mode: park}\n",
	"script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: \"one\\u202Etwo\"}}]\n- text: the end\n",
}

func TestWatchShowsALineForEachRunAndDecidesByKey(t *testing.T) {
	p := newProject(t, watchedFiles)
	s := p.serve()
	start := func() string {
		return asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`).ID
	}
	first := start()
	p.eventually("it asks", func() bool { return p.row(first).State == journal.Parked })
	n := p.inTmux(100, 24, "runs", "watch")
	has := func(what string) {
		t.Helper()
		p.eventually(what, func() bool { return strings.Contains(n.all(), what) })
	}
	has("? 1 of 1: fs.write of run " + first)
	has("U+202E") // hidden characters are shown
	has("a approve")
	// Neither space nor Enter approves; a does.
	n.tmux("send-keys", " ", "Enter")
	has(first + "  asks")
	if p.row(first).State != journal.Parked {
		t.Fatalf("%+v", p.row(first))
	}
	p.eventually("it is approved", func() bool {
		n.tmux("send-keys", "a")
		return strings.Contains(n.all(), "answered; resume it")
	})
	has("runs resume " + first)
	p.exits(0, "runs", "resume", first)
	has(first + "  asks  ended: final_answer")

	// The second run is rejected, with a reason that the model reads.
	second := start()
	has("? 1 of 1: fs.write of run " + second)
	p.eventually("a reason is typed", func() bool {
		n.tmux("send-keys", "r")
		return strings.Contains(n.all(), "reason: ")
	})
	n.tmux("send-keys", "-l", "not that file")
	n.tmux("send-keys", "Enter")
	has("runs resume " + second)
	p.exits(0, "runs", "resume", second)
	if f := p.exits(0, "runs", "log", second); !strings.Contains(f.out, "not that file") {
		t.Errorf("%s", f.out)
	}
	has(second + "  asks  ended: final_answer")
	n.tmux("send-keys", "q")
	has("exit code 0")
	if all := n.all(); strings.Count(all, first+"  asks  ended") != 1 || strings.Contains(all, "a approve") {
		t.Errorf("what is left:\n%s", all)
	}
	s.stop()
}

func TestWatchWithoutATerminalPrintsChanges(t *testing.T) {
	p := newProject(t, watchedFiles)
	p.exits(4, "run", "agent.yaml", "go")
	id := p.newest()
	w := p.start("runs", "watch", id[:6])
	p.eventually("the run is shown", func() bool { return strings.Contains(w.out.String(), id+"  asks  parked") })
	p.exits(0, "runs", "approve", id, "1-1", "--resume")
	if f := w.wait(); f.code != 0 || !strings.Contains(f.out, id+"  asks  ended: final_answer") {
		t.Errorf("exit code %d: %s%s", f.code, f.out, f.err)
	}
	if f := p.exits(0, "runs", "watch"); f.out != "" {
		t.Errorf("nothing goes on: %s", f.out)
	}
	p.exits(2, "runs", "watch", "none")
}
