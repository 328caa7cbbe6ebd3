package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/tool/web"
)

// streams are a command's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is the state that commands share.
type app struct {
	streams
	// arg0 is the name that this program was called by.
	arg0        string
	journalPath string
	configPath  string
	// metrics counts what runs do; nil if metrics are off.
	metrics *signals.Metrics
	// pending returns the calls of a run and its descendants that wait for a
	// decision; nil until the journal is open.
	pending func(run string) []string
	// pointFrom is the default place of a new journal that is created elsewhere.
	pointFrom string
	// recordPath is the script that a resumed run's answers are added to.
	recordPath string
	// typed returns the keyboard, which is opened by the first question.
	typed func() *keyboard
	// limiter is shared by all runs of this process.
	limiter transport.Limiter
	// pages bounds the web pages that all runs of this process fetch.
	pages web.PageLimit
	// shim starts this program again, beside the commands of a sandbox.
	shim sandbox.Shim
	// build is what the program adds to the command line.
	build Build
	// known are the redactors of this process, which learn tokens.
	known redactors
}

// execute runs one command line, whose first element is the program's name, and
// returns its exit code.
func execute(args []string, s streams, shim sandbox.Shim, b Build) (code int) {
	a := &app{streams: s, arg0: args[0], shim: shim, build: b, typed: sync.OnceValue(func() *keyboard { return listen(s.in) })}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.err, "pawl: internal error: %v; the journal is kept. Please report this\n", p)
			code = exitFailed
		}
	}()
	root := a.rootCommand()
	root.SetArgs(args[1:])
	return a.report(suggest(root, root.Execute()))
}

// suggest returns advice for an unknown command: users often write an agent file or
// a verb of runs in a command's place.
func suggest(root *cobra.Command, err error) error {
	var word string
	if err == nil {
		return nil
	}
	if _, other := fmt.Sscanf(err.Error(), "unknown command %q for \"pawl\"", &word); other != nil {
		return err
	}
	unknown := fmt.Sprintf("unknown command %q for \"pawl\"", word)
	verb, _, _ := root.Find([]string{"runs", word})
	if other := elsewhere(word); other != nil {
		return other
	}
	switch like := root.SuggestionsFor(word); {
	case len(like) > 0:
		return usagef("%s; did you mean %s?", unknown, strings.Join(like, " or "))
	case isFile(word):
		return usagef("%s; an agent file is run with 'pawl run %s'", unknown, shellWord(word))
	case verb.Name() == word || verb.HasAlias(word):
		return usagef("%s; did you mean 'pawl runs %s'?", unknown, word)
	}
	return usagef("%s; 'pawl --help' lists them", unknown)
}

// elsewhere returns the error for a command that only the build for several machines has,
// nil for any other word.
func elsewhere(word string) error {
	if !slices.Contains([]string{"journal", "worker"}, word) {
		return nil
	}
	return usagef("this build has no command '%s'; %s", word, otherBuild)
}

// report prints an error and returns its exit code. An error that does not come
// from a command is a usage error that cobra found.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok {
		exit = &exitError{code: exitUsage, err: err}
	}
	switch {
	case brokenPipe(exit.err):
		return exitOK
	case exit.err != nil:
		text := a.describe(exit.err)
		if _, ok := errors.AsType[decode.Errors](exit.err); !ok {
			text = "pawl: " + text // the lines of a file's problems start with their place, for editors
		}
		fmt.Fprintln(a.err, harmless(text))
	}
	return exit.code
}

// The groups of the global help.
const (
	groupRun   = "run"
	groupLook  = "look"
	groupOther = "other"
)

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Run agents that loop until done",
		Long: `Pawl runs agents that loop until done: it calls a model, runs the tools the model asks for,
feeds the results back, and repeats until a stop condition is met. Every step is stored in a durable
journal, so a crash loses no finished work.

The journal and the config file are in the nearest .pawl: that of the current directory, or of the
first directory above it that has one which belongs to you. The search ends below your home directory
and at the boundary of the file system. A flag or variable that names a file takes precedence.

Exit codes: 0 ok; 1 failed; 2 usage or invalid file; 3 stopped by a limit; 4 parked, waiting for
a decision or an input; 130 cancelled or interrupted.`,
		Example: `  pawl init
  pawl check agent.yaml
  pawl run agent.yaml "Make the failing test pass"
  pawl runs
  pawl runs resume k7x2`,
		Version:                    thisBuild(a.build.Version).String(),
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			if err := checkURL(a.journalPath); err != nil {
				return err
			}
			a.journalPath, err = followed(a.journalPath)
			return err
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w\nSee '%s --help'", flagError(c, err), c.CommandPath())
	})
	root.SetHelpCommand(helpCommand())
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version") // cobra's own would take -v for it too
	root.PersistentFlags().StringVar(&a.journalPath, "journal", defaultJournal(), "path of the journal ($PAWL_JOURNAL, journal.db of the nearest .pawl)")
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "config file ($PAWL_CONFIG, config.yaml of the nearest .pawl)")
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run agents:"},
		&cobra.Group{ID: groupLook, Title: "Inspect and control runs:"},
		&cobra.Group{ID: groupOther, Title: "More:"},
	)
	root.SetHelpCommandGroupID(groupOther)
	for group, commands := range map[string][]*cobra.Command{
		groupRun:   {a.runCommand(), a.codeCommand(), a.loopCommand(), a.evalCommand(), a.checkCommand(), a.serveCommand(), a.mcpCommand(), a.acpCommand()},
		groupLook:  {a.runsCommand()},
		groupOther: {a.initCommand(), a.modelsCommand(), a.schemaCommand(), a.tokenCommand(), a.doctorCommand(), a.completionCommand(), a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	for _, command := range a.build.Commands {
		c := command(a.environment())
		c.GroupID = groupOther
		root.AddCommand(c)
	}
	a.completeArguments(root)
	classifyErrors(root)
	return root
}

// classifyErrors makes every error of a command a failure, unless it has another
// code; the remaining errors are cobra's and mean wrong usage.
func classifyErrors(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			if err := emptyFlag(c); err != nil {
				return err
			}
			return failure(run(c, args))
		}
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				if text := err.Error(); strings.HasPrefix(text, "accepts ") || strings.HasPrefix(text, "requires ") {
					err = cmp.Or(counted(c, args), err) // cobra reports only their number
				}
				return usagef("%w\nUsage: %s\nSee '%s --help'", err, c.UseLine(), c.CommandPath())
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		classifyErrors(child)
	}
}

// emptyFlag rejects a flag with an empty value, such as an unset shell variable,
// because the meaning of a missing flag is not what the user intended. A reason may
// be empty, and opening the journal reports more about an empty path.
func emptyFlag(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		kind, text := f.Value.Type(), f.Value.String()
		if f.Name != "reason" && f.Name != "journal" && (kind == "string" && text == "" || kind == "stringSlice" && text == "[]") {
			err = usagef("--%s is empty; give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// counted reports, in the words of a command's usage, which arguments are missing
// or too many; nil for other errors.
func counted(c *cobra.Command, args []string) error {
	var names []string
	required := 0
	for _, word := range strings.Fields(c.Use)[1:] {
		if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[].") != "" {
			break
		}
		if names = append(names, word); word[0] != '[' {
			required = len(names)
		}
	}
	switch {
	case len(args) < required:
		if missing := names[len(args):required]; len(args) == 0 || !slices.Contains(names[:len(args)], missing[0]) {
			return fmt.Errorf("%s is missing", strings.Join(missing, " "))
		}
		return fmt.Errorf("the second %s is missing: got only %s", names[len(args)], args[len(args)-1])
	case len(args) > len(names) && len(names) > 0:
		return fmt.Errorf("got %s, want %s; quote what has spaces", plural(len(args), "argument"), strings.Join(names, " "))
	}
	return nil
}

func defaultJournal() string {
	if p := os.Getenv("PAWL_JOURNAL"); p != "" {
		return p
	}
	return filepath.Join(nearest(), journalName)
}
