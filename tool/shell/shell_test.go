package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

func run(ctx context.Context, t tool.Tool, command string) (tool.Result, error) {
	raw, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		return tool.Result{}, err
	}
	return t.Run(ctx, tool.Call{ID: "c", Args: raw})
}

func good(t *testing.T, sh tool.Tool, command string) tool.Result {
	t.Helper()
	r, err := run(t.Context(), sh, command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

func TestTheExitCodeAndTheOutputOfACommand(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		for _, c := range []struct {
			command string
			code    int
			output  string
		}{
			{"echo out; echo err >&2", 0, "exit code: 0\nout\nerr\n"},
			{"true", 0, "exit code: 0\n"},
			{"echo no >&2; exit 3", 3, "exit code: 3\nno\n"},
			{"exit 255", 255, "exit code: 255\n"},
			{"kill -9 $$", 137, "exit code: 137 (signal: killed)\n"},
			{"kill -TERM $$", 143, "exit code: 143 (signal: terminated)\n"},
			{`sh -c 'kill -9 $$' 2>/dev/null; exit $?`, 137, "exit code: 137\n"},
			{`printf 'a\377b\342\202'`, 0, "exit code: 0\na\uFFFDb\uFFFD"},
			{"cat", 0, "exit code: 0\n"}, // input is empty, not missing
			{"read line || echo none", 0, "exit code: 0\nnone\n"},
			{`test "$PWD" = "$(pwd -P)" && echo same`, 0, "exit code: 0\nsame\n"},
			{"(: < /dev/tty) 2>/dev/null || echo no terminal", 0, "exit code: 0\nno terminal\n"},
		} {
			r := good(t, sh, c.command)
			if r.ExitCode == nil || *r.ExitCode != c.code || r.IsError != (c.code != 0) || r.Truncated {
				t.Errorf("%s: %+v", c.command, r)
			}
			if diff := gocmp.Diff(c.output, r.Output); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.command, diff)
			}
		}
		if r := good(t, sh, "/no/such/program"); *r.ExitCode != 127 || !r.IsError || r.ErrorType != event.ErrorTool {
			t.Errorf("%+v", r)
		}
	})
}

func TestCommandsThatCannotBeStarted(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		dir := filepath.Join(t.TempDir(), "work")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		sh := newShell(shell.Options{Dir: dir})
		bad := func(command string, kind event.ErrorType) {
			t.Helper()
			_, err := run(t.Context(), sh, command)
			if typed, ok := errors.AsType[*tool.Error](err); !ok || typed.Type != kind {
				t.Errorf("%.20q: %v", command, err)
			}
		}
		bad(" \n", event.ErrorInvalidArgs)
		bad("echo a\x00b", event.ErrorInvalidArgs)
		bad("echo "+strings.Repeat("x", 1<<20), event.ErrorInvalidArgs)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		bad("true", event.ErrorWorkspace)
	})
}

func TestACallThatIsCancelledBeforeItStartsDoesNotRun(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		if r, err := run(ctx, newShell(shell.Options{Dir: dir}), "touch ran"); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Error("the command ran")
		}
	})
}

// rows: ALF-18, HAR-64
func TestWhatTheToolDeclares(t *testing.T) {
	sh := shell.New(shell.Options{Dir: t.TempDir(), Timeout: time.Minute, MaxTimeout: 5 * time.Minute})
	set, err := tool.NewSet(sh)
	if err != nil {
		t.Fatal(err)
	}
	got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: json.RawMessage(`{"command":"go test\n./..."}`)})
	if got.Problem != nil || got.ReadOnly || got.Concurrent || got.Effect != event.EffectAtMostOnce || got.Describe != "run go test ./..." {
		t.Errorf("%+v", got)
	}
	if diff := gocmp.Diff([]event.Access{{Key: "*", Write: true}}, got.Access); diff != "" {
		t.Error(diff)
	}
	for args, want := range map[string]time.Duration{
		`{"command":"x"}`:                            time.Minute,
		`{"command":"x","timeout_seconds":2.5}`:      2500 * time.Millisecond,
		`{"command":"x","timeout_seconds":300}`:      5 * time.Minute,
		`{"command":"x","timeout_seconds":1e300}`:    5 * time.Minute,
		`{"command":"x","timeout_seconds":0}`:        time.Minute,
		`{"command":"x","timeout_seconds":-7}`:       time.Minute,
		`{"command":"x","timeout_seconds":1e-300}`:   1,
		fmt.Sprintf(`{"x":%d}`, math.MaxInt64):       time.Minute,
		`{"command":"x","timeout_seconds":"broken"}`: time.Minute,
	} {
		if d := sh.AttemptTimeout(json.RawMessage(args)); d != want {
			t.Errorf("%s: %s, want %s", args, d, want)
		}
	}
	if !strings.Contains(sh.Description, "after 60 seconds") || !strings.Contains(sh.Description, "at most 300") {
		t.Error(sh.Description)
	}
}

func TestCommandsSeeNoSecrets(t *testing.T) {
	env := []string{
		"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "LANG=de_DE.UTF-8", "GOFLAGS=-mod=mod", "https_proxy=http://proxy:3128",
		"GOPROXY=https://user:pass@proxy.example.com,direct", "HTTPS_PROXY=http://u:p@proxy:1", "HTTP_PROXY=http://token@proxy:1",
		"http_proxy=user:pass@proxy:3128", "http_proxy=token@10.0.0.1:3128/", "HTTPS_PROXY=user:p@ss@proxy",
		"OPENAI_API_KEY=sk-x", "GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "DB_PASSWORD=x", "SSH_AUTH_SOCK=/x", "MY_VARIABLE=x",
		"LC_SECRET=x", "novalue",
	}
	want := []string{
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "LANG=de_DE.UTF-8", "GOFLAGS=-mod=mod", "https_proxy=http://proxy:3128",
	}
	if diff := gocmp.Diff(want, shell.Environment(env)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	t.Setenv("PAWL_TEST_API_KEY", "leaked")
	t.Setenv("GOPROXY", "https://user:leaked@proxy.example.com")
	inEveryTier(t, func(t *testing.T, newShell maker) {
		if r := good(t, newShell(shell.Options{Dir: t.TempDir()}), "env; set"); strings.Contains(r.Output, "leaked") {
			t.Errorf("the command saw %s", r.Output)
		}
	})
}

func BenchmarkCommand(b *testing.B) {
	sh := shell.New(shell.Options{Dir: b.TempDir()})
	for b.Loop() {
		if _, err := run(b.Context(), sh, "true"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestACommandThatCannotRunIsAProblemBeforeItIsJudged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(shell.New(shell.Options{Dir: dir}))
	if err != nil {
		t.Fatal(err)
	}
	problem := func(command string) event.ErrorType {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if p := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: raw}).Problem; p != nil {
			return p.Type
		}
		return ""
	}
	if got := problem("ls"); got != "" {
		t.Errorf("a command in a workspace: %s", got)
	}
	if got := problem(" "); got != event.ErrorInvalidArgs {
		t.Errorf("no command: %s", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if got := problem("ls"); got != event.ErrorWorkspace {
		t.Errorf("a workspace that is gone: %s", got)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if got := problem("ls"); got != event.ErrorWorkspace {
		t.Errorf("a workspace whose name leads elsewhere: %q", got)
	}
}
