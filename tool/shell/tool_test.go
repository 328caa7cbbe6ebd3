package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// commandTool is the tool of a script that sh runs in a directory of its own.
func commandTool(t *testing.T, script string, c tool.Command) (tool.Tool, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Name, c.Argv = "ticket.lookup", []string{"sh", "tool.sh"}
	return shell.ForCommand(c, shell.Options{Dir: dir}), dir
}

func callOf(args string) tool.Call {
	return tool.Call{ID: "run-1-1", Key: "run:run-1-1", Attempt: 1, Args: json.RawMessage(args)}
}

func TestCommandToolExitCodes(t *testing.T) {
	for _, test := range []struct {
		script, output string
		kind           event.ErrorType
		code           int
	}{
		{"cat", `{"id": 1}`, "", 0},
		{`echo '{"title": "fire"}'; echo noise >&2`, "{\"title\": \"fire\"}\n", "", 0},
		{"echo partly; echo 'no such ticket' >&2; exit 1", `{"error":"ticket.lookup failed with exit code 1: no such ticket","type":"tool_error","output":"partly\n"}`, event.ErrorTool, 1},
		{"echo 'not yours' >&2; exit 2", `{"error":"ticket.lookup refused the call: not yours","type":"permission_denied"}`, event.ErrorDenied, 2},
		{"exit 7", `{"error":"ticket.lookup failed with exit code 7","type":"tool_error"}`, event.ErrorTool, 7},
		{"kill -9 $$", `{"error":"ticket.lookup was ended by a signal: killed","type":"tool_error"}`, event.ErrorTool, 137},
	} {
		lookup, _ := commandTool(t, test.script, tool.Command{})
		for range 2 { // a second call of the same tool
			r, err := lookup.Run(t.Context(), callOf(`{"id": 1}`))
			if err != nil {
				t.Fatalf("%s: %v", test.script, err)
			}
			if r.Output != test.output || r.ErrorType != test.kind || r.IsError != (test.kind != "") || r.ExitCode == nil || *r.ExitCode != test.code {
				t.Errorf("%s: %+v", test.script, r)
			}
		}
	}
}

func TestCommandToolEnvironment(t *testing.T) {
	t.Setenv("SOME_API_KEY", "of the machine")
	lookup, _ := commandTool(t, `echo "$PAWL_CALL_ID $PAWL_IDEMPOTENCY_KEY [$TICKET_TOKEN] [$SOME_API_KEY]"`, tool.Command{Env: []string{"TICKET_TOKEN=secret"}})
	r, err := lookup.Run(t.Context(), callOf("{}"))
	if want := "run-1-1 run:run-1-1 [secret] []\n"; err != nil || r.Output != want {
		t.Errorf("%q, %v; want %q", r.Output, err, want)
	}
	second := callOf("{}")
	second.ID, second.Key = "run-2-1", "run:run-2-1"
	if r, err := lookup.Run(t.Context(), second); err != nil || !strings.HasPrefix(r.Output, "run-2-1 run:run-2-1 ") {
		t.Errorf("the second call: %q, %v", r.Output, err)
	}
}

func TestCommandToolDeclares(t *testing.T) {
	plain, _ := commandTool(t, "", tool.Command{})
	if plain.Effect != event.EffectAtMostOnce || !plain.Sandboxed || plain.ReadOnly || plain.Concurrent {
		t.Errorf("without a word of the owner's: %+v", plain)
	}
	labels := event.Labels{Untrusted: true}
	declared, _ := commandTool(t, "", tool.Command{Effect: event.EffectIdempotent, Risk: event.RiskSend, Labels: &labels, Timeout: time.Second})
	set, err := tool.NewSet(declared)
	if err != nil {
		t.Fatal(err)
	}
	call := set.Resolve("id", llm.ToolCall{CallID: "id", Name: "ticket.lookup", Args: json.RawMessage("{}")})
	if call.Problem != nil || call.Effect != event.EffectIdempotent || call.Facts.Risk != event.RiskSend || call.Labels != labels || declared.AttemptTimeout(nil) != time.Second {
		t.Errorf("%+v", call)
	}
	if len(call.Facts.Runs) != 1 || call.Facts.Runs[0].Path != "tool.sh" || len(call.Facts.Paths) != 0 {
		t.Errorf("facts %+v", call.Facts)
	}
}

func TestCommandToolIsStopped(t *testing.T) {
	lookup, dir := commandTool(t, "echo begun; echo >begun; sleep 600", tool.Command{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(begun) // until the program writes to it
		cancel()
	}()
	r, err := lookup.Run(ctx, callOf("{}"))
	if !errors.Is(err, context.Canceled) || r.Output != "begun\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCommandToolBoundsItsOutputs(t *testing.T) {
	lookup, _ := commandTool(t, "head -c 200000 /dev/zero | tr '\\0' e >&2; head -c 17000000 /dev/zero | tr '\\0' o; exit 1", tool.Command{})
	r, err := lookup.Run(t.Context(), callOf("{}"))
	if err != nil || !r.Truncated {
		t.Fatalf("%v, truncated %v", err, r.Truncated)
	}
	if n := strings.Count(r.Output, "e"); n > 70_000 || n < 60_000 {
		t.Errorf("%d bytes of stderr", n)
	}
	if n := strings.Count(r.Output, "o"); n > shell.MaxOutput+1000 || n < shell.MaxOutput-1000 {
		t.Errorf("%d bytes of stdout", n)
	}
}
