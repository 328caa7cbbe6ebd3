package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
)

// asServer makes this program an MCP server.
const asServer = "PAWL_CRASH_MCP_SERVER"

func init() {
	if os.Getenv(asServer) != "" {
		mcptest.Main()
		os.Exit(0)
	}
}

// point is a moment of a call at which Pawl is killed.
type point struct {
	name string
	// held are files that keep the call from going further, and hook waits for one.
	held string
	hook string
	// reached is a word of the ledger that is noted at the moment; without one it is when
	// the call is in the journal.
	reached string
	// answers lets the server answer while Pawl is stopped.
	answers bool
	// sent is how many calls the server has had, and doubt whether it is not known.
	sent  int
	doubt bool
}

var points = []point{
	{
		name: "before it is journalled", held: "hold-hook",
		hook: `hooks: {before_tool: [{command: "while [ -e hold-hook ]; do sleep 0.01; done"}]}`,
	},
	{name: "before it is sent", held: mcptest.HoldFile, reached: "held", doubt: true},
	{name: "before the answer", reached: "call", sent: 1, doubt: true},
	{name: "before the answer is journalled", reached: "call", answers: true, sent: 1, doubt: true},
}

// A call of an MCP server's tool during which Pawl is killed is made once at most, and
// again only by its owner's word, with the same key. Hints of the server change
// nothing, and the server does not outlive Pawl.
func TestKilledCallOfAServerIsMadeOnce(t *testing.T) {
	for _, hints := range []string{
		``, `{"idempotentHint":false}`, `{"idempotentHint":true}`, `{"readOnlyHint":true}`, `{"readOnlyHint":true,"idempotentHint":true}`, `{"destructiveHint":true}`,
	} {
		for _, at := range points {
			t.Run("hints "+hints+" "+at.name, func(t *testing.T) {
				t.Parallel()
				at.play(t, hints, "")
			})
		}
	}
	for _, at := range points {
		t.Run("the owner's word "+at.name, func(t *testing.T) {
			t.Parallel()
			at.play(t, "", `effects: {"docs.*": idempotent}`)
		})
	}
}

// play kills a run at the moment and takes it up again. effects is the owner's word.
func (at point) play(t *testing.T, hints, effects string) {
	w := newWorld(t, "- tool_calls: [{name: shell.exec, arguments: {command: 'true'}}]\n- tool_calls: [{name: docs.wait, arguments: {text: a}}]\n- text: done\n")
	server := w.server(t)
	if hints != "" {
		hints = `,"annotations":` + hints
	}
	w.write(t, "tools.json", `[{"tools":[{"name":"wait","inputSchema":{"type":"object"}`+hints+`}]}]`)
	w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: ["docs.*", shell.exec]
  approvals: {"docs.*": never, shell.exec: always}
  may_send: ["docs.*"]
  `+effects+`
  mcp: [{server: docs, command: ["`+server+`"], env: {`+asServer+`: "1", `+mcptest.LedgerVariable+`: ledger, `+mcptest.ToolsVariable+`: tools.json}}]
`+at.hook+"\n")
	// The process that goes on after a question has yet to start the server.
	if out, err := w.command("run", "agent.yaml", "go").CombinedOutput(); err == nil {
		t.Fatalf("nobody is asked: %s", out)
	}
	row, _, _ := w.theRun(t)
	if at.held != "" {
		w.write(t, at.held, "")
	}
	w.write(t, "ledger", "")
	approve := w.command("runs", "approve", row.ID, row.ID+"-1-1", "--resume")
	if err := approve.Start(); err != nil {
		t.Fatal(err)
	}
	if at.reached == "" {
		w.awaitCall(t, row.ID, row.ID+"-2-1")
	} else {
		w.awaitLedger(t, at.reached)
	}
	if at.answers {
		if err := approve.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitStop(t, approve.Process.Pid)
		w.write(t, mcptest.AnswerFile, "")
		w.awaitLedger(t, "answered")
	}
	if err := approve.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = approve.Wait()
	for serversOf(t, server) > 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("the server outlives Pawl")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if at.held != "" {
		if err := os.Remove(w.path(at.held)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, mcptest.AnswerFile, "")
	if out, err := w.command("runs", "resume", row.ID).CombinedOutput(); err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	at.check(t, w, effects != "")
}

// awaitStop waits until each thread of a process has stopped, which takes a moment after
// the signal.
func awaitStop(t *testing.T, pid int) {
	t.Helper()
	for {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(states) == 0 {
			t.Fatalf("the threads of process %d: %v", pid, err)
		}
		going := slices.ContainsFunc(states, func(name string) bool {
			stat, err := os.ReadFile(name)
			_, rest, _ := bytes.Cut(stat, []byte(") "))
			return err == nil && !bytes.HasPrefix(rest, []byte("T"))
		})
		if !going {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the process does not stop")
		case <-time.After(time.Millisecond):
		}
	}
}

// check holds the ledger and the journal to what is expected.
func (at point) check(t *testing.T, w world, idempotent bool) {
	t.Helper()
	want, wantDoubt := at.sent, 1
	switch {
	case !at.doubt:
		want, wantDoubt = 1, 0
	case idempotent:
		want, wantDoubt = at.sent+1, 0
	}
	var calls []string
	for line := range strings.Lines(w.read(t, "ledger")) {
		if strings.HasPrefix(line, "call ") {
			calls = append(calls, line)
		}
	}
	row, records, _ := w.theRun(t)
	if len(calls) != want || want == 2 && calls[0] != calls[1] || want > 0 && !strings.Contains(calls[0], row.ID+":"+row.ID+"-2-1") {
		t.Errorf("the server had the calls %q, want %d", calls, want)
	}
	inDoubt := 0
	for _, e := range decode(t, records) {
		if r, ok := e.Data.(event.ToolResult); ok && r.ErrorType == event.ErrorInDoubt {
			inDoubt++
		}
	}
	if inDoubt != wantDoubt {
		t.Errorf("%d calls in doubt, want %d", inDoubt, wantDoubt)
	}
}

// server is this program under a name of the world's own, so that its processes are
// known.
func (w world) server(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(self, w.path("server")); err == nil {
		return w.path("server")
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.path("server"), text, 0o700); err != nil {
		t.Fatal(err)
	}
	return w.path("server")
}

// awaitCall waits until the journal has a call of a run that goes on.
func (w world) awaitCall(t *testing.T, run, id string) {
	t.Helper()
	for {
		var records []journal.Record
		w.look(t, func(s journal.Store) {
			var err error
			if records, err = s.Records(t.Context(), run, 0, 0); err != nil {
				t.Fatal(err)
			}
		})
		for _, e := range decode(t, records) {
			if c, ok := e.Data.(event.ToolCall); ok && c.CallID == id {
				return
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s is not journalled", id)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitLedger waits for a line of the ledger that begins with a word.
func (w world) awaitLedger(t *testing.T, word string) {
	t.Helper()
	for !strings.Contains("\n"+w.read(t, "ledger"), "\n"+word) {
		select {
		case <-t.Context().Done():
			t.Fatalf("nothing notes %s", word)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// serversOf counts the processes that are a program without arguments.
func serversOf(t *testing.T, program string) (n int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, _ := os.ReadFile(name); string(text) == program+"\x00" {
			n++
		}
	}
	return n
}

// A call that goes on as a task at its server is not made again after a kill: the task is
// asked for, although the tool is at_most_once.
func TestKilledTaskIsAskedFor(t *testing.T) {
	w := newWorld(t, "- tool_calls: [{name: docs.task, arguments: {text: file}}]\n- text: done\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: ["docs.task"]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
  mcp: [{server: docs, command: [`+self+`], env: {`+asServer+`: "1", `+mcptest.LedgerVariable+`: ledger}}]
`)
	cmd := w.command("run", "agent.yaml", "go")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "ledger")
	for !strings.Contains(w.read(t, "ledger"), "get file") {
		select {
		case <-t.Context().Done():
			t.Fatal("the task is not asked for")
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	w.write(t, "done", "")
	row, _, _ := w.theRun(t)
	var stderr bytes.Buffer
	resume := w.command("runs", "resume", row.ID)
	resume.Stderr = &stderr
	if err := resume.Run(); err != nil {
		t.Fatalf("resume: %v\n%s", err, &stderr)
	}
	_, records, _ := w.theRun(t)
	for _, e := range decode(t, records) {
		if r, is := e.Data.(event.ToolResult); is && (r.IsError || r.Output != "done") {
			t.Errorf("the result is %+v", r)
		}
	}
	if n := strings.Count(w.read(t, "ledger"), "call task"); n != 1 {
		t.Errorf("the call is %d times on the wire", n)
	}
}
