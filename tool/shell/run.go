package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

const (
	// MaxOutput bounds the bytes that are kept of a command's output: a longer output
	// keeps its head and tail, so that a command that prints gigabytes needs no more
	// memory and journal space.
	MaxOutput = 16 << 20
	// maxErrors bounds what is kept of a separate stderr.
	maxErrors = 64 << 10
	// termGrace is how long a command may clean up when it is stopped.
	termGrace = 2 * time.Second
	// drainGrace is how long the output of background processes of a command is read,
	// before and after they are killed.
	drainGrace = 250 * time.Millisecond
)

// run implements the tool: /bin/sh runs the command line.
func (o Options) run(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	if err := o.check(a); err != nil {
		return tool.Result{}, err
	}
	command := tool.Invocation{Argv: []string{"/bin/sh", "-c", a.Command}, Facts: c.Facts, Sandbox: c.Sandbox}
	if c.Run != nil {
		command.Printed = c.Run.Print
	}
	end, err := o.execute(ctx, command)
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Result{Reached: end.reached, Changed: end.changed, Untrusted: end.fetched()}
	header := end.header()
	if end.stopped {
		header = end.note
	}
	r.Output, r.Truncated = end.out.text(header, c.Redact)
	if shown, overwritten := onScreen(header, r.Output); shown != r.Output {
		r.Raw, r.Output, r.Overwritten = r.Output, shown, overwritten
	}
	if end.stopped {
		return r, ctx.Err()
	}
	if note := o.closedNote(end, r.Output, c.Facts, o.boxed(c.Sandbox)); note != "" {
		r.Output = withLine(r.Output, note)
		if r.Raw != "" {
			r.Raw = withLine(r.Raw, note)
		}
	}
	if len(end.changed) > 0 {
		// The exit code alone would report success.
		r.IsError, r.ErrorType = true, event.ErrorProtected
		return r, nil
	}
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

// here fails if the working directory was replaced or is gone; the file tools do not
// follow a replacement either.
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

// execute runs a command to its end, or until ctx ends. Every process that this package
// starts for a run passes through here.
func (o Options) execute(ctx context.Context, c tool.Invocation) (end ended, err error) {
	if err := ctx.Err(); err != nil {
		return ended{}, err
	}
	if c.Sandbox && o.Sandbox == nil {
		return ended{}, &tool.Error{Type: event.ErrorDenied, Message: "not permitted: a rule puts the call into the sandbox, and there is none"}
	}
	p, err := o.process(c)
	if err != nil {
		return ended{}, err
	}
	printed := newHeadTail(MaxOutput)
	printed.written = c.Printed
	out, err := newOutlet(printed, drainGrace)
	if err != nil {
		return ended{}, err
	}
	defer out.close()
	errs, complaints := out, printed
	if c.Apart {
		complaints = newHeadTail(maxErrors)
		complaints.written = c.Printed
		if errs, err = newOutlet(complaints, drainGrace); err != nil {
			return ended{}, err
		}
		defer errs.close()
	}
	switch {
	case o.boxed(c.Sandbox):
		end, err = confine(ctx, o.Sandbox, p, o.grants(c.Facts), out, errs)
	case o.Bare != nil:
		end, err = confine(ctx, o.Bare, p, o.grants(c.Facts), out, errs)
	default:
		end, err = spawn(ctx, p, out, errs)
	}
	if err != nil {
		return ended{}, o.startError(err)
	}
	end.out, end.errs = printed, complaints
	return end, nil
}

// boxed reports whether a command runs in the sandbox; asked reports that a rule
// requires it.
func (o Options) boxed(asked bool) bool { return o.Sandbox != nil && (asked || !o.OnDemand) }

// withLine returns a text followed by a line, if there is one.
func withLine(text, line string) string {
	if line != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// ended describes how a command ended: with a code, or by a signal.
type ended struct {
	code   int
	signal syscall.Signal
	// stopped reports that it was ordered to end.
	stopped bool
	// out is its output, errs its stderr; they are the same unless stderr is separate.
	out, errs *headTail
	// note is an extra text for the model.
	note string
	// reached are the machines that it requested.
	reached []event.Reach
	// changed are the protected paths that it changed.
	changed []event.Change
}

// fetched reports whether the command received data from another machine.
func (e ended) fetched() bool {
	return slices.ContainsFunc(e.reached, func(r event.Reach) bool { return r.Denied == "" })
}

func endOf(s *os.ProcessState) ended {
	if s == nil {
		return ended{}
	}
	if st, ok := s.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return ended{signal: st.Signal()}
	}
	return ended{code: s.ExitCode()}
}

// exitCode returns the code that a shell would report: 128 plus the signal for a
// process that a signal ended.
func (e ended) exitCode() int {
	if e.signal != 0 {
		return 128 + int(e.signal)
	}
	return e.code
}

func (e ended) header() string {
	if e.signal != 0 {
		return fmt.Sprintf("exit code: %d (signal: %s)\n%s", e.exitCode(), e.signal, e.note)
	}
	return fmt.Sprintf("exit code: %d\n%s", e.code, e.note)
}
