// Package shell holds shell.exec: one command in the workspace, in a process
// group of its own, with an environment from an allow-list, a timeout, and
// bounded output.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Options configure [New].
type Options struct {
	// Dir is the working directory.
	Dir string
	// Env is the environment of commands; nil means [Environment] of this
	// process's.
	Env []string
	// Timeout bounds a command that does not ask for another; 0 means 120 s.
	Timeout time.Duration
}

// maxOutput bounds the bytes kept of each output, head and tail together, so
// that a command that prints gigabytes costs no more memory than this.
const maxOutput = 256 << 10

type args struct {
	Command        string  `json:"command" jsonschema:"the command line, run by /bin/sh -c in the workspace"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" jsonschema:"stop the command after this many seconds; 120 when absent"`
}

// New returns the shell.exec tool.
func New(o Options) tool.Tool {
	if o.Env == nil {
		o.Env = Environment(os.Environ())
	}
	t := tool.New("shell.exec", "Run a shell command in the workspace and return its exit code and output.",
		func(ctx context.Context, a args) (tool.Result, error) { return run(ctx, o, a) })
	t.Effect = event.EffectAtMostOnce
	t.Access = func(json.RawMessage) []event.Access { return []event.Access{{Key: "*", Write: true}} }
	t.Timeout = o.Timeout
	t.TimeoutFor = func(raw json.RawMessage) time.Duration {
		var a args
		_ = json.Unmarshal(raw, &a)
		return time.Duration(a.TimeoutSeconds * float64(time.Second))
	}
	t.Describe = func(raw json.RawMessage) string {
		var a args
		_ = json.Unmarshal(raw, &a)
		return "run " + a.Command
	}
	return t
}

func run(ctx context.Context, o Options, a args) (tool.Result, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", a.Command)
	cmd.Dir, cmd.Env = o.Dir, o.Env
	out := newHeadTail(maxOutput)
	cmd.Stdout, cmd.Stderr = out, out
	// The command gets a process group of its own, so that stopping it stops
	// everything it started (FIELD F17).
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		// What the command left running in its group has no owner any more.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	text := out.String()
	if ctx.Err() != nil {
		return tool.Result{Output: text}, ctx.Err()
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed && !errors.Is(err, exec.ErrWaitDelay) {
		return tool.Result{}, fmt.Errorf("the command could not be started: %w", err)
	}
	code := 0
	if failed {
		code = exitCode(exit)
	}
	return tool.Result{
		Output: format(code, exit, text), ExitCode: &code, IsError: code != 0, ErrorType: errorType(code), Truncated: out.cut() > 0,
	}, nil
}

// exitCode is the code that a shell would report: 128 plus the signal for a
// process that a signal ended.
func exitCode(e *exec.ExitError) int {
	if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return 128 + int(st.Signal())
	}
	return e.ExitCode()
}

func errorType(code int) event.ErrorType {
	if code == 0 {
		return ""
	}
	return event.ErrorTool
}

func format(code int, e *exec.ExitError, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit code: %d\n", code)
	if e != nil && code > 128 {
		fmt.Fprintf(&b, "(%s)\n", e)
	}
	b.WriteString(text)
	return b.String()
}
