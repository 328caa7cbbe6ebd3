package shell

import (
	"context"
	"io"
	"time"

	"github.com/pawlrun/pawl/tool"
)

// Program is a program of the owner that runs beside the tools, such as a hook. Like a
// command of shell.exec it runs in a separate session and process group, which does not
// outlive the call or this process.
type Program struct {
	// Words are the program and its arguments, without a shell.
	Words []string
	// Dir is the working directory.
	Dir string
	// Env is the exact environment; see [Environment].
	Env []string
	// Input is the program's stdin.
	Input []byte
	// MaxOutput bounds the bytes that are kept of each output, head and tail together.
	MaxOutput int
	// Copy, if not nil, receives the program's stdout as it is printed. OnOutput, if
	// not nil, is called with each piece of its output, including errors. Both must
	// return at once.
	Copy     io.Writer
	OnOutput func(output []byte)
}

// Program returns a command as a program that runs outside of every sandbox.
func (o Options) Program(c tool.Invocation) (Program, error) {
	p, err := o.withDefaults().process(c)
	return Program{Words: p.argv, Dir: p.dir, Env: p.env, Input: p.input}, err
}

// Ended describes how a program ended.
type Ended struct {
	// Code is the exit code that a shell would report: 128 plus the signal for a
	// program that a signal ended. Signal then names it.
	Code   int
	Signal string
	Stdout string
	Stderr string
	// Cut reports that Stdout is incomplete.
	Cut bool
	// Left reports that a process that the program left behind still held its stdout,
	// so that it might have printed more.
	Left bool
}

// answerGrace is how long a process that the program left behind may continue the
// output, for example a filter that its shell did not wait for.
const answerGrace = time.Second

// Run runs the program to its end. If ctx ends first, it stops the program and all that
// it started and returns its output and ctx's error.
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
