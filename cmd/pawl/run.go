package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/attach"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/launch"
)

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE [INPUT]",
		Short: "Run an agent",
		Long: `Runs an agent file on an input. The answer goes to stdout, progress to stderr. INPUT may be
"-" for stdin, and is left out where the prompt says it all. Ctrl-C parks the run; 'pawl runs resume' goes on with it.
'pawl init' writes a first agent file, and 'pawl schema agent' tells what can stand in one.`,
		Example: `  pawl run agent.yaml "Fix the failing test"
  git diff | pawl run reviewer.yaml -
  pawl run agent.yaml "What is wrong here?" --attach screenshot.png --attach report.pdf
  pawl run agent.yaml "Try it" --model scripted/answers.yaml --json
  pawl run agent.yaml "Take your time" --detach --timeout 8h
  pawl run --continue k7x2 "Now do the same for the other package"
  pawl run --continue k7x2 --limit max_tool_calls=400`,
		Args: func(_ *cobra.Command, args []string) error { return f.arguments(args) },
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, &f, args) },
	}
	f.flags(c)
	return c
}

// arguments checks the count: a run that continues another has its file.
func (f *runFlags) arguments(args []string) error {
	switch {
	case f.from != "" && len(args) > 1:
		return errors.New("a continued run has its file already; give only a message")
	case len(args) > 2:
		return fmt.Errorf("got %d arguments, want FILE and INPUT; quote an input with spaces", len(args))
	case len(args) == 0 && f.from == "":
		return errors.New("FILE is missing")
	}
	return nil
}

func (a *app) run(c *cobra.Command, f *runFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.detach {
		if err := f.idle("cannot go with --detach; 'pawl runs events' shows the run"); err != nil {
			return err
		}
	}
	o, err := f.options(c)
	if err != nil {
		return err
	}
	if o.Config, err = a.config(); err != nil {
		return err
	}
	if o.Sandbox, err = a.sandbox(c.Context()); err != nil {
		return err
	}
	o.Limiter, o.Pages, o.Journal = &a.limiter, &a.pages, a.journalPath
	replayed := &replays{app: a}
	o.Replay = replayed.open
	l, err := a.prepare(c.Context(), f, args, o)
	if err != nil {
		return err
	}
	defer l.session.close()
	if f.detach {
		return l.detach(c.Context(), f.json, f.record)
	}
	ctx, stop := interruptible(c.Context())
	defer stop()
	p := newPrinter(a.err, screenOf(a.err, os.Getenv))
	v := a.view(f.output, p)
	l.session.asking(&l.env, o.Approve, p)
	l.env = recording(l.env, f.record, o.Config)
	r, err := l.session.engine.Start(ctx, l.started, l.env)
	if err != nil {
		return errors.Join(err, closeEnv(l.env))
	}
	return replayed.verdict(a.follow(r, v, f.live()))
}

// launched is a run that is ready to start.
type launched struct {
	session *session
	started event.RunStarted
	env     engine.Env
}

// prepare opens the journal once everything else is known to be right, so that
// a wrong command line leaves nothing behind.
func (a *app) prepare(ctx context.Context, f *runFlags, args []string, o launch.Options) (*launched, error) {
	if f.from != "" {
		return a.prepareContinued(ctx, f.from, args, o)
	}
	input, err := a.task(args[1:])
	if err != nil {
		return nil, err
	}
	started, env, err := launch.Agent(args[0], input, o)
	if err != nil {
		return nil, fileError(args, err)
	}
	s, err := a.open(ctx, toCreate)
	if err != nil {
		return nil, errors.Join(err, closeEnv(env))
	}
	return &launched{session: s, started: started, env: env}, nil
}

func closeEnv(env engine.Env) error {
	if env.Close == nil {
		return nil
	}
	return env.Close()
}

// fileError is a launch that failed: all that can be wrong there is the file
// or what it names.
func fileError(args []string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		switch _, missing := os.Stat(args[0]); {
		case missing == nil:
		case len(args) > 1 && isFile(args[1]):
			return usagef("there is no file %s; FILE comes before INPUT: pawl run %s \"…\"", args[0], shellWord(args[1]))
		default:
			return usagef("there is no file %s", args[0])
		}
	}
	return usageError(err)
}

// task is the INPUT of a run, "" where the command line has none. One that is
// given and says nothing is a slip, such as a variable that is not set or a
// command that failed before the pipe, and would be paid for.
func (a *app) task(args []string) (string, error) {
	text, err := a.input("INPUT", args)
	if err != nil || len(args) == 0 || strings.TrimSpace(text) != "" {
		return text, err
	}
	if args[0] == "-" {
		return "", usagef("nothing came on stdin, so INPUT is empty; leave the - out if the run needs no INPUT")
	}
	return "", usagef("INPUT is empty; leave it out if the run needs none")
}

// input is the message of the command line, which its usage calls name, or stdin
// for "-".
func (a *app) input(name string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", nil
	case args[0] != "-":
		return args[0], textual(name, args[0])
	}
	b, err := readBounded(a.in)
	if err != nil {
		return "", fmt.Errorf("read the input from stdin: %w", err)
	}
	return string(b), textual("what came on stdin", string(b))
}

// errTooLong is what a text beyond the size of an attachment gives.
var errTooLong = fmt.Errorf("it has more than %d MiB", attach.MaxFile>>20)

// readBounded reads a text that may come from a pipe or a device without an end.
func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, attach.MaxFile+1))
	if len(b) > attach.MaxFile {
		return nil, errTooLong
	}
	return b, err
}

func readFileBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}
