package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

const (
	// MaxOutput bounds the bytes kept of a command's output: up to it the output
	// is whole, beyond it head and tail are, so that a command which
	// prints gigabytes costs no more memory and no more room in the journal.
	MaxOutput = 16 << 20
	// maxErrors bounds what is kept of a stderr that is kept apart.
	maxErrors = 64 << 10
	// termGrace is how long a command that is stopped may clean up.
	termGrace = 2 * time.Second
	// drainGrace is how long the output of what a command left in the
	// background is still read, before and after that is killed.
	drainGrace = 250 * time.Millisecond
)

// run is the tool: a command line is a command that /bin/sh runs.
func (o Options) run(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	if err := o.check(a); err != nil {
		return tool.Result{}, err
	}
	end, err := o.execute(ctx, tool.Invocation{Argv: []string{"/bin/sh", "-c", a.Command}, Facts: c.Facts, Sandbox: c.Sandbox})
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
		// Its code would say that the command did well.
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

// execute runs a command to its end, or until ctx ends. All that this package
// starts for a run comes through here.
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

// boxed reports whether a command runs in the sandbox; asked says that a rule puts it there.
func (o Options) boxed(asked bool) bool { return o.Sandbox != nil && (asked || !o.OnDemand) }

// withLine is a text with a line behind it, if there is one.
func withLine(text, line string) string {
	if line != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}
