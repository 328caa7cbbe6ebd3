package external_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/external"
	"github.com/pawlrun/pawl/tool/shell"
)

// script is a program of /bin/sh in a directory of its own.
func script(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// options are those of a test, whose rooms are its own.
func options(t *testing.T) external.Options {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return external.Options{Shell: shell.Options{Dir: t.TempDir()}, Events: true}
}

func run(t *testing.T, o external.Options, task string, argv ...string) (tool.Ended, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	return external.Commands(o).Run(ctx, tool.Invocation{Argv: argv, Stdin: []byte(task)})
}

func ends(t *testing.T, o external.Options, task string, argv ...string) tool.Ended {
	t.Helper()
	end, err := run(t, o, task, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestAProgramIsGivenItsTaskAsItsOwnerSays(t *testing.T) {
	long := strings.Repeat("and so on ", 4000)
	for _, c := range []struct {
		name, prompt, task, script, want string
		args                             []string
	}{
		{name: "last, with nothing of ours before it", task: "-rf 'x' $(y)", script: `printf '%s|' "$@"`, args: []string{"-p"}, want: "-p|-rf 'x' $(y)|"},
		{name: "last, where there is no other", task: "go on", script: `printf '%s|' "$@"`, want: "go on|"},
		{name: "behind the owner's --", task: "go on", script: `printf '%s|' "$@"`, args: []string{"--"}, want: "--|go on|"},
		{name: "which it does not read", task: "go on", script: `read -r line || echo nothing to read`, want: "nothing to read\n"},
		{name: "as its input", prompt: external.PromptStdin, task: "line\nline", script: `cat; echo "$#"`, want: "line\nline0\n"},
		{name: "as a file", prompt: external.PromptFile, task: "go on", script: `cat "$1"; cat "$PAWL_PROMPT_FILE"; echo "$#"`, want: "go ongo on1\n"},
		{name: "as a file where it is long", task: long, script: `cat "$PAWL_PROMPT_FILE"; case "$1" in *"$PAWL_PROMPT_FILE"*) echo "$#";; esac`, want: long + "1\n"},
		{name: "without a key that nobody named", task: "x", script: `echo "${OTHER_API_KEY-none} $NAMED_API_KEY"`, want: "none sesame\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTHER_API_KEY", "not for you")
			o := options(t)
			o.Prompt, o.Variables = c.prompt, []string{"NAMED_API_KEY=sesame"}
			end := ends(t, o, c.task, append([]string{script(t, c.script)}, c.args...)...)
			if end.Output != c.want || *end.ExitCode != 0 || end.Report != nil {
				t.Errorf("it ends as %+v with %.200q", end, end.Output)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

func TestHowAProgramEndedIsTakenForWhatItIs(t *testing.T) {
	o := options(t)
	end := ends(t, o, "x", script(t, `echo said; echo "it broke" >&2; exit 7`))
	if *end.ExitCode != 7 || end.Output != "said\n" || end.Stderr != "it broke" || end.Report != nil || !end.Untrusted || !end.Private {
		t.Errorf("it ends as %+v", end)
	}
	if end = ends(t, o, "x", script(t, `kill -KILL $$`)); end.ExitCode != nil || end.Signal != "killed" {
		t.Errorf("it ends as %+v", end)
	}
	_, err := run(t, o, "x", "no-such-program")
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Type != event.ErrorNotStarted {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err = run(t, o, "", script(t, "echo")); err == nil {
		t.Error("a program runs without a task")
	}
}

func TestAProgramWritesItsResultToAFile(t *testing.T) {
	end := ends(t, options(t), "x", script(t, `echo 'the promise: DONE'; echo '{"done": false}' > "$PAWL_RESULT_FILE"`))
	if end.Report == nil || end.Report.Result != "{\"done\": false}\n" {
		t.Errorf("it ends as %+v", end)
	}
	end = ends(t, options(t), "x", script(t, `rm -f "$PAWL_RESULT_FILE"; mkfifo "$PAWL_RESULT_FILE"`))
	if end.Report != nil {
		t.Errorf("of a pipe is read %+v", end.Report)
	}
}

// What a program prints is bounded, and the end of its stream counts whatever was
// dropped before.
func TestAProgramThatPrintsGigabytesIsBounded(t *testing.T) {
	end := ends(t, options(t), "x", script(t, `echo '{"type":"system","subtype":"init"}'
head -c 200000000 /dev/zero | tr '\0' 'x'; echo
head -c 40000000 /dev/zero | tr '\0' 'e' >&2
echo '{"type":"result","subtype":"success","is_error":false,"result":"all of it","total_cost_usd":0.5}'`))
	if len(end.Output) > shell.MaxOutput+1000 || !end.Truncated || len(end.Stderr) > 3000 {
		t.Errorf("it keeps %d and %d bytes", len(end.Output), len(end.Stderr))
	}
	if end.Report == nil || end.Report.Text != "all of it" || end.Report.Cost.USD != 0.5 {
		t.Errorf("it reports %+v", end.Report)
	}
}

// What is kept of a text is cut, and no half of a secret is left at the cut.
func TestWhatIsCutIsLookedThroughForSecretsBefore(t *testing.T) {
	const secret = "sesame-open-the-door"
	o := options(t)
	c := tool.Invocation{Argv: []string{script(t, "printf '%s\\n' "+strings.Repeat("x", 100)+secret+strings.Repeat("y", 2038)+" >&2; exit 1")}, Stdin: []byte("x")}
	c.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[a secret]") }
	end, err := external.Commands(o).Run(t.Context(), c)
	if err != nil || !strings.Contains(end.Stderr, "secret]yyy") || strings.Contains(end.Stderr, "door") {
		t.Errorf("it ends as %+v, %v", end, err)
	}
}

// gone waits for a process to end, whose number a program wrote down.
func gone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(state, []byte(") Z ")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d lives on", pid)
}

func TestWhatAProgramLeavesBehindEndsWithIt(t *testing.T) {
	for name, text := range map[string]string{
		"in its group":           `sleep 60 & echo $! > "$MARK"; echo done`,
		"in another session":     `setsid sh -c 'echo $$ > "$MARK"; exec sleep 60' & while ! test -s "$MARK"; do :; done; echo done`,
		"with its output closed": `setsid sh -c 'echo $$ > "$MARK"; exec sleep 60' >/dev/null 2>&1 & while ! test -s "$MARK"; do :; done; echo done`,
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			mark := filepath.Join(t.TempDir(), "mark")
			o.Variables = []string{"MARK=" + mark}
			start := time.Now()
			if end := ends(t, o, "x", script(t, text)); end.Output != "done\n" {
				t.Errorf("it ends as %+v", end)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("it took %s", d)
			}
			gone(t, mark)
		})
	}
}

// A stop of a program that has closed its output and lives on does not block, and
// returns what it printed before.
func TestAProgramThatClosesItsOutputAndLivesOnIsStopped(t *testing.T) {
	o := options(t)
	mark := filepath.Join(t.TempDir(), "mark")
	o.Variables = []string{"MARK=" + mark}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := tool.Invocation{Argv: []string{script(t, `trap '' TERM; echo $$ > "$MARK"; echo said; exec >/dev/null 2>&1; while :; do sleep 1; done`)}, Stdin: []byte("x")}
	c.Printed = func([]byte) { stop() }
	end, err := external.Commands(o).Run(ctx, c)
	if !errors.Is(err, context.Canceled) || end.Output != "said\n" || end.Signal != "killed" {
		t.Errorf("it ends as %+v, %v", end, err)
	}
	gone(t, mark)
}

// What was left over when Pawl and all that guards its programs were killed ends when
// the next one begins: by its group's leader, if that is the process that was written
// down, or by its environment. A number alone says nothing.
func TestWhatAKilledPawlLeftBehindEndsWithTheNextOne(t *testing.T) {
	start := func(dir, variable string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "sleep 60 & wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Dir, cmd.Env = dir, append(os.Environ(), variable)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return cmd
	}
	o := options(t)
	marked, other := start("/", external.ResultVariable+"="+filepath.Join(os.TempDir(), "pawl-process-one", "result")), start("/", "A=b")
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(os.TempDir(), "pawl-process-"+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	external.Commands(o)
	if err := marked.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("what was left over ends as %v", err)
	}
	if err := syscall.Kill(-other.Process.Pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("another process ends as %v", err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("there are left %v", left)
	}
}

// A program that another Pawl runs is none of ours.
func TestAProgramThatIsBeingRunIsLeftAlone(t *testing.T) {
	o := options(t)
	mark := filepath.Join(t.TempDir(), "mark")
	o.Variables = []string{"MARK=" + mark}
	c := tool.Invocation{Argv: []string{script(t, `echo begun; while ! test -e "$MARK"; do sleep 0.01; done; echo done`)}, Stdin: []byte("x")}
	c.Printed = func([]byte) {
		external.Commands(o)
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	if end, err := external.Commands(o).Run(t.Context(), c); err != nil || end.Output != "begun\ndone\n" {
		t.Errorf("it ends as %+v, %v", end, err)
	}
}
