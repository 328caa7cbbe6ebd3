package shell

import (
	"context"
	"io"
	"time"

	"github.com/pawlrun/pawl/tool"
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
	// Copy takes what the program prints as it comes, beside what is kept of it; nil
	// takes nothing. OnOutput is called whenever it has printed something, also as an
	// error; nil is not called. Both must return at once.
	Copy     io.Writer
	OnOutput func()
}

// Program is a command as a program that runs outside of every sandbox.
func (o Options) Program(c tool.Invocation) (Program, error) {
	p, err := o.withDefaults().process(c)
	return Program{Words: p.argv, Dir: p.dir, Env: p.env, Input: p.input}, err
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

// Run runs the program to its end. When ctx ends first, the program is stopped
// with all that it started, the error is ctx's, and what it printed is returned.
func (p Program) Run(ctx context.Context) (Ended, error) {
	if err := ctx.Err(); err != nil {
		return Ended{}, err
	}
	stdout, stderr := newHeadTail(p.MaxOutput), newHeadTail(p.MaxOutput)
	stdout.written, stderr.written = p.OnOutput, p.OnOutput
	into := io.Writer(stdout)
	if p.Copy != nil {
		into = io.MultiWriter(stdout, p.Copy)
	}
	out, err := newOutlet(into, answerGrace)
	if err != nil {
		return Ended{}, err
	}
	defer out.close()
	errs, err := newOutlet(stderr, drainGrace)
	if err != nil {
		return Ended{}, err
	}
	defer errs.close()
	end, err := spawn(ctx, process{
		argv: p.Words, dir: p.Dir, env: append(p.Env[:len(p.Env):len(p.Env)], "PWD="+p.Dir), input: p.Input,
	}, out, errs)
	if err != nil {
		return Ended{}, err
	}
	e := Ended{Code: end.exitCode(), Stdout: stdout.String(), Stderr: stderr.String(), Cut: stdout.cut() > 0, Left: !out.whole}
	if end.signal != 0 {
		e.Signal = end.signal.String()
	}
	if end.stopped {
		return e, ctx.Err()
	}
	return e, nil
}
