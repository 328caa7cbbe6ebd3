package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// commandsInEveryTier holds commands to the same behaviour without a sandbox, in
// each tier and in the box that holds nothing.
func commandsInEveryTier(t *testing.T, test func(t *testing.T, dir string, run tool.Commands)) {
	for _, tier := range append(sandbox.Tiers(), "bare") {
		t.Run(string(tier), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			o := shell.Options{Dir: dir}
			if tier == "bare" {
				o.Bare = bare(t)
			} else {
				needs(t, tier)
				o.Sandbox = box(t, tier, dir)
			}
			test(t, dir, shell.Commands(o))
		})
	}
}

// No shell reads the words of a command, which has its directory, its input and its
// own end.
func TestACommandIsItsWordsItsDirectoryItsInputAndItsEnd(t *testing.T) {
	commandsInEveryTier(t, func(t *testing.T, dir string, run tool.Commands) {
		if err := errors.Join(
			os.Mkdir(filepath.Join(dir, "below"), 0o755),
			os.WriteFile(filepath.Join(dir, "below", "say"), []byte("#!/bin/sh\necho said \"$1\"\n"), 0o755),
		); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			command tool.Invocation
			want    tool.Ended
		}{
			{tool.Invocation{Argv: []string{"printf", "%s|", "a  b", "$HOME", "'", ";"}}, tool.Ended{ExitCode: new(0), Output: "a  b|$HOME|'|;|"}},
			{tool.Invocation{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}}, tool.Ended{ExitCode: new(3), Output: "out\nerr\n"}},
			{tool.Invocation{Argv: []string{"sh", "-c", "kill -9 $$"}}, tool.Ended{Signal: "killed"}},
			{tool.Invocation{Argv: []string{"below/say", "more"}}, tool.Ended{ExitCode: new(0), Output: "said more\n"}},
			{tool.Invocation{Argv: []string{"cat"}}, tool.Ended{ExitCode: new(0)}},
			{tool.Invocation{Argv: []string{"cat"}, Stdin: []byte("one\ntwo\n")}, tool.Ended{ExitCode: new(0), Output: "one\ntwo\n"}},
			{tool.Invocation{Argv: []string{"true"}, Stdin: make([]byte, 1<<20)}, tool.Ended{ExitCode: new(0)}}, // without a reader
		} {
			got, err := run.Run(t.Context(), c.command)
			if err != nil {
				t.Fatalf("%q: %v", c.command.Argv, err)
			}
			got.Private, got.Untrusted = false, false
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("%q (-want +got)\n%s", c.command.Argv, diff)
			}
		}
	})
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	commandsInEveryTier(t, func(t *testing.T, dir string, run tool.Commands) {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "text"), []byte("no"), 0o644), os.Symlink("/", filepath.Join(dir, "out"))); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			command tool.Invocation
			kind    event.ErrorType
		}{
			"nothing":              {tool.Invocation{}, event.ErrorInvalidArgs},
			"a NUL byte":           {tool.Invocation{Argv: []string{"echo", "a\x00b"}}, event.ErrorInvalidArgs},
			"no such program":      {tool.Invocation{Argv: []string{"no-such-program"}}, event.ErrorNotStarted},
			"no program":           {tool.Invocation{Argv: []string{"./text"}}, event.ErrorNotStarted},
			"one judged otherwise": {tool.Invocation{Argv: []string{"touch", "x"}, Facts: &event.Facts{Commands: []event.Command{{ReadOnly: true}}}}, event.ErrorConflict},
		} {
			_, err := run.Run(t.Context(), c.command)
			if failed, ok := errors.AsType[*tool.Error](err); !ok || failed.Type != c.kind {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// What a command has printed is there when it is stopped, and nothing of it goes on.
func TestACommandIsStoppedWithAllThatItStarted(t *testing.T) {
	commandsInEveryTier(t, func(t *testing.T, dir string, run tool.Commands) {
		_, gone := fifo(t, dir)
		ctx, stop := context.WithCancel(t.Context())
		printed := make(chan struct{}, 100)
		c := tool.Invocation{Argv: []string{"sh", "-c", "sleep 300 3>fifo & exec 3>fifo; echo up; sleep 300"}, Printed: func([]byte) { printed <- struct{}{} }}
		go func() {
			<-printed
			stop()
		}()
		got, err := run.Run(ctx, c)
		if !errors.Is(err, context.Canceled) || got.Signal == "" || got.Output != "up\n" {
			t.Errorf("it ended as %+v, %v", got, err)
		}
		gone()
	})
}

// A command is judged by what a shell would do with its words in its directory.
func TestACommandIsJudgedByItsWordsAsACommandLine(t *testing.T) {
	dir := t.TempDir()
	run := shell.Commands(shell.Options{Dir: dir})
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	facts, labels := run.Facts(tool.Invocation{Argv: []string{"rm", "-r", "a; echo"}})
	want := []event.PathUse{{Path: "a; echo", Write: true, Tree: true}}
	if diff := gocmp.Diff(want, facts.Paths); diff != "" || facts.Risk != event.RiskDelete || !facts.Unsandboxed || !labels.Private {
		t.Errorf("%+v, %+v\n%s", facts, labels, diff)
	}
	if facts, _ := run.Facts(tool.Invocation{Argv: []string{"sh"}, Stdin: []byte("rm -r .")}); len(facts.Unclear) == 0 && facts.Risk == event.RiskRead {
		t.Errorf("a script that nobody looks at is taken for %+v", facts)
	}
}

// The tier that cannot keep a command from what is protected undoes what it did
// there, as it does for the tool.
func TestACommandThatChangesWhatIsProtectedIsUndone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := shell.Commands(shell.Options{Dir: dir, Sandbox: boxOf(t, sandbox.Landlock, sandbox.Policy{Workspace: dir, Protected: gitAlone{}})})
	got, err := run.Run(t.Context(), tool.Invocation{Argv: []string{"touch", ".git/hook"}})
	if err != nil || len(got.Changed) != 1 || !got.Changed[0].Undone {
		t.Errorf("it ended as %+v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "hook")); err == nil {
		t.Error("the change is still there")
	}
}

// The system bounds how long a word may be.
func TestACommandThatIsTooLongSaysSo(t *testing.T) {
	commandsInEveryTier(t, func(t *testing.T, dir string, run tool.Commands) {
		_, err := run.Run(t.Context(), tool.Invocation{Argv: []string{"true", strings.Repeat("x", 4<<20)}})
		if failed, ok := errors.AsType[*tool.Error](err); !ok || failed.Type != event.ErrorInvalidArgs {
			t.Error(err)
		}
	})
}
