package shell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Program is a program of the owner's that is run beside the tools, such as a
// hook. It is held like a command of shell.exec: in a session and process
// group of its own that does not outlive the call or this process.
type Program struct {
	// Words are the program and its arguments; no shell reads them.
	Words []string
	// Dir is the working directory.
	Dir string
	// Env is the environment, taken as it is; see [Environment].
	Env []string
	// Input is what the program reads.
	Input []byte
	// MaxOutput bounds the bytes that are kept of each of its outputs, head and
	// tail together.
	MaxOutput int
}

// Ended is how a program ended.
type Ended struct {
	// Code is the exit code that a shell would report: 128 plus the signal for
	// a program that a signal ended. Signal then names it.
	Code   int
	Signal string
	Stdout string
	Stderr string
	// Cut says that Stdout is not the whole.
	Cut bool
	// Left says that something which the program had left behind still held its
	// stdout, so that it may have been about to say more when it was stopped.
	Left bool
}

// answerGrace is how long what a program has left behind may go on with its
// answer: a filter that its shell did not wait for has its last words then.
const answerGrace = time.Second

// programScript waits for a line before it becomes the program, whose input is
// what follows: a shell reads no further than the line.
const programScript = `read -r go && exec "$@"`

// Run runs the program to its end. When ctx ends first, the program is stopped
// with all that it started, and the error is ctx's.
func (p Program) Run(ctx context.Context) (Ended, error) {
	if err := ctx.Err(); err != nil {
		return Ended{}, err
	}
	// The kernel sends Pdeathsig when the thread that started the child ends,
	// so this thread must live for as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	stdout, stderr := newHeadTail(p.MaxOutput), newHeadTail(p.MaxOutput)
	out, err := newOutlet(stdout)
	if err != nil {
		return Ended{}, err
	}
	defer out.close()
	errs, err := newOutlet(stderr)
	if err != nil {
		return Ended{}, err
	}
	defer errs.close()
	cmd := &exec.Cmd{Dir: p.Dir, Env: append(p.Env[:len(p.Env):len(p.Env)], "PWD="+p.Dir), Stdout: out.w, Stderr: errs.w}
	g, input, err := startGated(cmd, programScript, p.Words...)
	out.start()
	errs.start()
	if err != nil {
		return Ended{}, err
	}
	go func() {
		// A program need not read its input to the end, or at all.
		_, _ = input.Write(p.Input)
		_ = input.Close()
	}()
	forget := context.AfterFunc(ctx, g.stop)
	g.awaitLeader()
	whole := wait(out.copied, answerGrace)
	wait(errs.copied, drainGrace)
	forget()
	state, stopped, err := g.end()
	out.finish()
	errs.finish()
	switch {
	case err != nil:
		return Ended{}, err
	case stopped:
		return Ended{}, ctx.Err()
	}
	end := endOf(state)
	e := Ended{Code: end.exitCode(), Stdout: stdout.String(), Stderr: stderr.String(), Cut: stdout.cut() > 0, Left: !whole}
	if end.signal != 0 {
		e.Signal = end.signal.String()
	}
	return e, nil
}

// outlet reads one output of a program.
type outlet struct {
	r, w   *os.File
	into   io.Writer
	copied chan struct{}
}

func newOutlet(into io.Writer) (*outlet, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &outlet{r: r, w: w, into: into}, nil
}

// start reads until nobody holds the other end any more.
func (d *outlet) start() {
	d.w.Close()
	d.copied = drain(d.into, d.r)
}

// finish waits for the rest of the output, and takes the pipe from what left
// the group with it in its hands.
func (d *outlet) finish() {
	if !wait(d.copied, drainGrace) {
		d.r.Close()
		<-d.copied
	}
}

func (d *outlet) close() {
	d.w.Close()
	d.r.Close()
}
