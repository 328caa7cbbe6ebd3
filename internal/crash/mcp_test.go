package crash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
)

// asServer makes this program an MCP server.
const asServer = "PAWL_CRASH_MCP_SERVER"

func init() {
	if os.Getenv(asServer) != "" {
		mcptest.Main()
		os.Exit(0)
	}
}

// A call of an MCP server's tool that was on the wire when Pawl was killed is made
// again only by its owner's word, with the same key. Hints of the server change
// nothing, and the server does not outlive Pawl.
func TestKilledCallOfAServerKeepsItsKey(t *testing.T) {
	for _, c := range []struct {
		name, hints, effects string
		attempts             int
	}{
		{"no hints", ``, "", 1},
		{"hints of idempotence", `,"annotations":{"readOnlyHint":true,"idempotentHint":true}`, "", 1},
		{"the owner's word", ``, `  effects: {"docs.*": idempotent}`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "- tool_calls: [{name: docs.silent, arguments: {text: a}}]\n- tool_calls: [{name: docs.echo, arguments: {text: b}}]\n- text: done\n")
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			w.write(t, "tools.json", fmt.Sprintf(`[{"tools":[{"name":"silent","inputSchema":{"type":"object"}%s},{"name":"echo","inputSchema":{"type":"object"}%s}]}]`, c.hints, c.hints))
			w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: ["docs.*"]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
`+c.effects+`
  mcp: [{server: docs, command: [`+self+`], timeout: 2s, env: {`+asServer+`: "1", `+mcptest.LedgerVariable+`: ledger, `+mcptest.ToolsVariable+`: tools.json}}]
`)
			cmd := w.command("run", "agent.yaml", "go")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.await(t, "ledger")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for serversOf(t, self) > 0 {
				select {
				case <-t.Context().Done():
					t.Fatal("the server outlives Pawl")
				case <-time.After(5 * time.Millisecond):
				}
			}
			row, _, _ := w.theRun(t)
			var stderr bytes.Buffer
			resume := w.command("runs", "resume", row.ID)
			resume.Stderr = &stderr
			if err := resume.Run(); err != nil {
				t.Fatalf("resume: %v\n%s", err, &stderr)
			}
			var silent, echo []string
			for line := range strings.Lines(w.read(t, "ledger")) {
				switch {
				case strings.HasPrefix(line, "call silent "):
					silent = append(silent, line)
				case strings.HasPrefix(line, "call echo "):
					echo = append(echo, line)
				}
			}
			if len(silent) != c.attempts || len(echo) != 1 || c.attempts == 2 && silent[0] != silent[1] || !strings.Contains(silent[0], row.ID+":"+row.ID+"-1-1") {
				t.Errorf("the server had the calls %q and %q\n%s", silent, echo, &stderr)
			}
			inDoubt := 0
			_, records, _ := w.theRun(t)
			for _, e := range decode(t, records) {
				if r, ok := e.Data.(event.ToolResult); ok && r.ErrorType == event.ErrorInDoubt {
					inDoubt++
				}
			}
			if want := 2 - c.attempts; inDoubt != want {
				t.Errorf("%d calls in doubt, want %d", inDoubt, want)
			}
		})
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
