package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/hook/command"
)

var before = hook.Call{
	Stage: event.HookBeforeTool, Hook: "guard", Run: "r", Cycle: 3, CallID: "c1", Tool: "fs.write",
	Args: json.RawMessage(`{"path":"a<b","content":"x"}`),
}

func line(t *testing.T, line string) command.Command {
	t.Helper()
	return command.Command{Line: line, FileDir: t.TempDir(), Workspace: t.TempDir()}
}

// rows: ALF-63, ALF-64
func TestAGateDecidesByItsExitCodeAndItsAnswer(t *testing.T) {
	for _, c := range []struct {
		line   string
		want   hook.Answer
		failed string
	}{
		{`exit 0`, hook.Answer{}, ""},
		{`echo`, hook.Answer{}, ""},
		{`echo '{"decision":"allow","reason":"fine"}'`, hook.Answer{Decision: event.HookContinue, Reason: "fine"}, ""},
		{`echo '{"args":{"path":"c"}}'`, hook.Answer{Args: json.RawMessage(`{"path":"c"}`)}, ""},
		{`echo '{"updatedInput":{"path":"c"}}'`, hook.Answer{Args: json.RawMessage(`{"content":"x","path":"c"}`)}, ""},
		{`echo '{"decision":"ask","reason":"look"}'`, hook.Answer{Decision: event.HookAsk, Reason: "look"}, ""},
		{`echo '{"decision":"deny","reason":"no"}'`, hook.Answer{Decision: event.HookBlock, Reason: "no"}, ""},
		{`echo no >&2; exit 2`, hook.Answer{Decision: event.HookBlock, Reason: "no"}, ""},
		{`echo '{"decision":'; echo no >&2; exit 2`, hook.Answer{Decision: event.HookBlock, Reason: "no"}, ""},
		{`echo oops >&2; exit 1`, hook.Answer{}, "it ended with exit code 1: oops"},
		{`kill -9 $$`, hook.Answer{}, "it was ended by a signal: killed"},
		{`echo fine`, hook.Answer{}, "its answer is not understood"},
		{`echo '{"updatedinput ":{}}'`, hook.Answer{}, `unknown field "updatedinput "`},
		{`echo null`, hook.Answer{}, "it is no object"},
		{`echo '{"decision":"block","decision":"allow"}'`, hook.Answer{}, "its decision is given twice"},
		{`echo '{"decision":"block","Decision":"allow"}'`, hook.Answer{}, "its Decision is given twice"},
		{`echo '{"output":null}'`, hook.Answer{}, "its output is null"},
		{`echo '{} {}'`, hook.Answer{}, "something follows"},
		{`echo '{"updatedInput":[]}'`, hook.Answer{}, "its updatedInput is no object"},
		{`echo '{"args":{},"updatedInput":{}}'`, hook.Answer{}, "both"},
		{`echo '{"decision":"perhaps"}'`, hook.Answer{}, `its decision is "perhaps"`},
		{`yes '{' | head -c 3000000`, hook.Answer{}, "more than"},
		{`/nowhere/at/all`, hook.Answer{}, "exit code 127"},
		{`{ sleep 600; echo '{"decision":"block"}'; } & exit 0`, hook.Answer{}, "it has left something behind that holds its output"},
		{`{ sleep 0.05; echo '{"decision":"block","reason":"late"}'; } & exit 0`, hook.Answer{Decision: event.HookBlock, Reason: "late"}, ""},
		{`sleep 600 >/dev/null & exit 0`, hook.Answer{}, ""},
	} {
		got, err := line(t, c.line).Run(t.Context(), before)
		if c.failed != "" {
			if err == nil || !strings.Contains(err.Error(), c.failed) {
				t.Errorf("%s: got %+v, %v", c.line, got, err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.line, err, diff)
		}
	}
}

func TestAnObserverIsNotAskedAndOnlyItsFailureCounts(t *testing.T) {
	for said, failed := range map[string]bool{
		`echo '{"decision":"block"}'`: false, `echo anything`: false, `echo no >&2; exit 2`: true, `exit 1`: true,
	} {
		c := line(t, said)
		c.Observer = true
		if got, err := c.Run(t.Context(), before); (err != nil) != failed || got.Decision != "" {
			t.Errorf("%s: got %+v, %v", said, got, err)
		}
	}
}

func TestHookInputHasBothNamesOfItsStage(t *testing.T) {
	c := line(t, `cat > told.json`)
	after := before
	after.Stage, after.Result = event.HookAfterTool, &event.ToolResult{Output: "written", ExitCode: new(0)}
	if _, err := c.Run(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.Workspace, "told.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"path": "a<b", "content": "x"}
	want := map[string]any{
		"event": "after_tool", "hook": "guard", "run": "r", "cycle": 3.0, "workspace": c.Workspace, "callId": "c1",
		"tool": "fs.write", "args": args, "toolName": "fs.write", "input": args,
		"result": map[string]any{"output": "written", "isError": false, "exitCode": 0.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAHookSeesNoSecretAndFindsTheFileThatNamesIt(t *testing.T) {
	c := line(t, `printenv API_TOKEN; printenv PAWL_AGENT_DIR >&2; exit 2`)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "API_TOKEN=1234"}
	got, err := c.Run(t.Context(), before)
	if err != nil || got.Reason != c.FileDir {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAHookThatIsStoppedLeavesNothingBehind(t *testing.T) {
	c := line(t, `sleep 600 & wait`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.Run(ctx, before); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Minute {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

func TestProgramsAreFoundRelativeToTheFileThatNamesThem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("hooks/guard", "#!/bin/sh\necho \"$1 $2\" >&2; exit 2\n", 0o755)
	write("hooks/plain", "", 0o644)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"./hooks/guard", "./hooks/plain", "x"}, ""},
		{[]string{"hooks/guard"}, ""},
		{[]string{"sh", "./hooks/guard"}, ""},
		{[]string{"./hooks/none"}, "is not there"},
		{[]string{"./hooks"}, "is a directory"},
		{[]string{"./hooks/plain"}, "is not executable"},
		{[]string{"no-such-program-anywhere"}, "is not found in $PATH"},
	} {
		cmd := command.Command{Words: c.words, FileDir: dir, Workspace: t.TempDir()}
		err := cmd.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v", c.words, err)
		}
	}
	cmd := command.Command{Words: []string{"./hooks/guard", "./hooks/plain", "x"}, FileDir: dir, Workspace: t.TempDir()}
	got, err := cmd.Run(t.Context(), before)
	if want := filepath.Join(dir, "hooks/plain") + " x"; err != nil || got.Reason != want {
		t.Errorf("got %+v, %v, want %s", got, err, want)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "hooks/guard"), filepath.Join(dir, "hooks/plain")}, cmd.Files()); diff != "" {
		t.Error(diff)
	}
	cmd = command.Command{Line: `python3 "$PAWL_AGENT_DIR/hooks/plain"; true`, FileDir: dir, Workspace: t.TempDir()}
	if diff := cmp.Diff([]string{filepath.Join(dir, "hooks/plain")}, cmd.Files()); diff != "" {
		t.Error(diff)
	}
}

func FuzzAnswersAreReadStrictly(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `{"decision":"allow"}`, `{"args":{"path":"b"}}`, `{"updatedInput":{"a":1}}`, `{"output":""}`, `{"decision":"ask"} x`, `[]`, `null`, `{"args":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		a, err := command.Decode(out, before)
		r := hook.Result(before, false, a, err)
		if err != nil && (r.Decision != event.HookBlock || !r.Failed) {
			t.Errorf("a gate that is not understood (%v) has %+v", err, r)
		}
		if r.Decision == event.HookRewrite && !json.Valid(r.Args) {
			t.Errorf("the rewritten arguments are %q", r.Args)
		}
	})
}
