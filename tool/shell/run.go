package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

const (
	// MaxOutput bounds the bytes kept of a command's output: up to it the output
	// is whole (FIELD F13), beyond it head and tail are, so that a command which
	// prints gigabytes costs no more memory and no more room in the journal.
	MaxOutput = 16 << 20
	// termGrace is how long a command that is stopped may clean up.
	termGrace = 2 * time.Second
	// drainGrace is how long the output of what a command left in the
	// background is still read, before and after that is killed.
	drainGrace = 250 * time.Millisecond
)

func (o Options) run(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	if err := o.check(a); err != nil {
		return tool.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if c.Sandbox && o.Sandbox == nil {
		return tool.Result{}, &tool.Error{Type: event.ErrorDenied, Message: "not permitted: a rule puts the call into the sandbox, and there is none"}
	}
	out := newHeadTail(MaxOutput)
	end, stopped, err := o.execute(ctx, c, a.Command, out)
	if err != nil {
		return tool.Result{}, o.startError(err)
	}
	r := tool.Result{Reached: end.reached, Untrusted: end.fetched()}
	if stopped {
		r.Output, r.Truncated = out.text("", c.Redact)
		return r, ctx.Err()
	}
	r.Output, r.Truncated = out.text(end.header(), c.Redact)
	code := end.exitCode()
	r.ExitCode = &code
	if code != 0 {
		r.IsError, r.ErrorType = true, event.ErrorTool
	}
	return r, nil
}

func (o Options) check(a args) error {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return &tool.Error{Type: event.ErrorInvalidArgs, Message: "the command is empty"}
	case strings.ContainsRune(a.Command, 0):
		return &tool.Error{Type: event.ErrorInvalidArgs, Message: "the command has a NUL byte in it"}
	}
	return o.here()
}

// here fails when another directory, or none, has the name of the one in which
// commands were to run: the file tools do not follow into it either.
func (o Options) here() error {
	info, err := os.Stat(o.Dir)
	if err == nil && info.IsDir() && (o.opened == nil || os.SameFile(o.opened, info)) {
		return nil
	}
	return &tool.Error{
		Type: event.ErrorWorkspace, Err: err,
		Message: fmt.Sprintf("the working directory %s is gone or was replaced while the run worked in it", o.Dir),
	}
}

func (o Options) startError(err error) error {
	if gone := o.here(); gone != nil {
		return gone
	}
	if errors.Is(err, syscall.E2BIG) {
		return &tool.Error{Type: event.ErrorInvalidArgs, Message: "the command is longer than the system allows; write it to a file and run that", Err: err}
	}
	return fmt.Errorf("the command could not be started: %w", err)
}

// execute runs a command to its end, or until ctx ends, which stopped says.
func (o Options) execute(ctx context.Context, c tool.Call, command string, out io.Writer) (end ended, stopped bool, err error) {
	switch {
	case o.Sandbox != nil && (c.Sandbox || !o.OnDemand):
		return o.confine(ctx, o.Sandbox, command, o.grants(c.Facts), out)
	case o.Bare != nil:
		return o.confine(ctx, o.Bare, command, nil, out)
	}
	return o.bare(ctx, command, out)
}

// bare runs a command without a box.
func (o Options) bare(ctx context.Context, command string, out io.Writer) (end ended, stopped bool, err error) {
	// The kernel sends Pdeathsig when the thread that started the child ends,
	// so this thread must live for as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	r, w, err := os.Pipe()
	if err != nil {
		return ended{}, false, err
	}
	defer r.Close()
	cmd := &exec.Cmd{Dir: o.Dir, Env: o.environment(), Stdout: w, Stderr: w}
	g, err := startGroup(cmd, command)
	w.Close()
	if err != nil {
		return ended{}, false, err
	}
	copied := drain(out, r)
	forget := context.AfterFunc(ctx, g.stop)
	g.awaitLeader()
	wait(copied, drainGrace)
	forget()
	state, stopped, err := g.end()
	if !wait(copied, drainGrace) {
		// Something left the group with the pipe in its hands.
		r.Close()
		<-copied
	}
	return endOf(state), stopped, err
}

func (o Options) environment() []string { return append(o.Env[:len(o.Env):len(o.Env)], "PWD="+o.Dir) }

// drain copies what comes until the last writer is gone.
func drain(out io.Writer, r io.Reader) (copied chan struct{}) {
	copied = make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(out, r)
	}()
	return copied
}

// wait waits for done, at most d, and says whether it was done.
func wait(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
