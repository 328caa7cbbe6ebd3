package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/internal/signals"
)

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE [INPUT]",
		Short: "Run an agent, a team, a workflow or a goal",
		Long: `Runs an agent, team, workflow or goal file on an input. The answer goes to stdout, progress to stderr. INPUT may be
"-" for stdin. Without INPUT, prompt.task of the file is the input; without that too, you are asked
at a terminal. Ctrl-C parks the run; 'pawl runs resume' continues it. 'pawl init' writes a first
agent file, and 'pawl schema agent' prints the schema of one.`,
		Example: `  pawl run agent.yaml "Fix the failing test"
  git diff | pawl run reviewer.yaml -
  pawl run agent.yaml "What is wrong here?" --attach screenshot.png --attach report.pdf
  pawl run agent.yaml "Try it" --model scripted/answers.yaml --json
  pawl run agent.yaml "Take your time" --detach --timeout 8h
  pawl run --continue k7x2 "Now do the same for the other package"
  pawl run --continue last --limit max_tool_calls=400`,
		Args: func(_ *cobra.Command, args []string) error { return f.arguments(args) },
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, &f, ofFile(f.withInput(args))) },
	}
	f.flags(c)
	c.Flags().BoolVar(&f.web, "web", false, "show the run on a page of this machine while it goes; the address is printed on stderr")
	c.MarkFlagsMutuallyExclusive("web", "detach")
	c.Flags().StringVar(&f.from, "continue", "", "start from this ended `RUN`, with a new message or a raised limit; last is the newest")
	return c
}

// arguments checks their number: a run that continues another already has a file.
func (f *runFlags) arguments(args []string) error {
	switch {
	case f.from != "" && len(args) > 1:
		return errors.New("a continued run has its file already; give only a message")
	case len(args) > 2:
		return fmt.Errorf("got %d arguments, want FILE and INPUT; quote an input with spaces", len(args))
	case len(args) == 0 && f.from == "":
		return errors.New("FILE is missing")
	case f.input != "" && (len(args) == 2 || len(args) == 1 && f.from != ""):
		return errors.New("INPUT is given twice, also with --input; leave one out")
	}
	return nil
}

// withInput uses the input of a flag as INPUT.
func (f *runFlags) withInput(args []string) []string {
	if f.input == "" {
		return args
	}
	return append(args, f.input)
}

// job is what a command line runs, and its input.
type job struct {
	// words are the arguments, and input those of them that are INPUT.
	words, input []string
	// open returns what prepares the run. It is called once, after everything else
	// is known.
	open func() (launcher, error)
}

// launcher prepares a run, see [launch.Kind.Launch].
type launcher func(input string, o launch.Options) (event.RunStarted, perform.Env, error)

// ofFile returns the job of the file that is the first argument.
func ofFile(words []string) job {
	j := job{words: words}
	if len(words) == 0 {
		return j // the command continues a run
	}
	j.input = words[1:]
	j.open = func() (launcher, error) {
		f, err := kinds.Read(words[0])
		if err != nil {
			return nil, fileError(words, err)
		}
		return func(input string, o launch.Options) (event.RunStarted, perform.Env, error) {
			started, env, err := f.Launch(input, o)
			if err != nil {
				err = fileError(words, err)
			}
			return started, env, err
		}, nil
	}
	return j
}

func (a *app) run(c *cobra.Command, f *runFlags, j job) error {
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
	var replayed *replays
	if o.Host, replayed, err = a.host(c.Context()); err != nil {
		return err
	}
	var dress func(*perform.Env)
	o.Dress = func(env *perform.Env) { dress(env) }
	l, err := a.prepare(c.Context(), f, j, o)
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
	dress = l.session.asking(o.Approve, p)
	dress(&l.env)
	l.env = a.recording(l.env, f.record, o.Config)
	r, err := l.session.engine.Start(ctx, l.started, l.env)
	if err != nil {
		return errors.Join(err, closeEnv(l.env))
	}
	if f.web {
		hide, err := a.showPage(ctx, l.session, r.RunID(), o)
		if err != nil {
			fmt.Fprintln(a.err, "warning: the run goes on without a page:", err)
		} else {
			defer hide()
		}
	}
	return replayed.verdict(a.follow(r, v, f.output))
}

// launched is a run that is ready to start.
type launched struct {
	session *session
	started event.RunStarted
	env     perform.Env
}

// prepare opens the journal after everything else was validated, so that a wrong
// command line leaves nothing behind.
func (a *app) prepare(ctx context.Context, flags *runFlags, j job, o launch.Options) (*launched, error) {
	if flags.from != "" {
		return a.prepareContinued(ctx, flags.from, j.words, o)
	}
	input, err := a.task(j.input)
	if err != nil {
		return nil, err
	}
	begin, err := j.open()
	if err != nil {
		return nil, err
	}
	started, env, err := begin(input, o)
	if errors.Is(err, launch.ErrNoInput) {
		if input, err = a.askForInput(ctx); err != nil {
			return nil, err
		}
		started, env, err = begin(input, o)
	}
	if err != nil {
		return nil, err
	}
	s, err := a.open(ctx, toCreate)
	if err != nil {
		return nil, errors.Join(err, closeEnv(env))
	}
	started.Principal, started.Trace = itsUser(), signals.Parent(os.Getenv)
	return &launched{session: s, started: started, env: env}, nil
}

func closeEnv(env perform.Env) error {
	if env.Close == nil {
		return nil
	}
	return env.Close()
}

// fileError returns the error of a failed launch, which is always caused by the
// file or by what it names.
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

// task returns the INPUT of a run, "" without one. An INPUT that is given but empty
// is an error: it is a mistake, such as an unset variable or a failed command
// before the pipe, and the run would cost money.
func (a *app) task(args []string) (string, error) {
	text, err := a.input("INPUT", args)
	if err != nil || len(args) == 0 || strings.TrimSpace(text) != "" {
		return text, err
	}
	if args[0] == "-" {
		return "", usagef("nothing came on stdin, so INPUT is empty; leave the - out where the file has prompt.task")
	}
	return "", usagef("INPUT is empty; leave it out where the file has prompt.task")
}

// askForInput reads the missing INPUT from the terminal. Without a person at the
// terminal it returns an error.
func (a *app) askForInput(ctx context.Context) (string, error) {
	missing := usagef("INPUT is missing; say what to do, give - for stdin, or write prompt.task in the file")
	if !screenOf(a.in, os.Getenv).terminal || !screenOf(a.err, os.Getenv).terminal {
		return "", missing
	}
	keys := a.typed()
	keys.begin()
	defer keys.end()
	for {
		fmt.Fprint(a.err, "input: ")
		text, err := keys.line(ctx)
		if errors.Is(err, errNoAnswer) {
			fmt.Fprintln(a.err)
			return "", missing
		}
		if err != nil || strings.TrimSpace(text) != "" {
			return text, errors.Join(err, textual("INPUT", text))
		}
	}
}

// input returns the message of the command line, which the usage calls name, or
// stdin for "-".
func (a *app) input(name string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", nil
	case args[0] != "-":
		return args[0], textual(name, args[0])
	}
	if screenOf(a.in, os.Getenv).terminal {
		fmt.Fprintf(a.err, "type %s, and end it with Ctrl-D on a line of its own\n", name)
	}
	b, err := readBounded(a.in)
	if err != nil {
		return "", fmt.Errorf("read the input from stdin: %w", err)
	}
	return string(b), textual("what came on stdin", string(b))
}

// errTooLong is returned for a text larger than an attachment.
var errTooLong = fmt.Errorf("it has more than %d MiB", attach.MaxFile>>20)

// readBounded reads a text from a pipe or a device that may not end.
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
