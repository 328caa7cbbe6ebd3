package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/loopflags"
	"github.com/pawlrun/pawl/internal/host/worktree"
	"github.com/pawlrun/pawl/tool/shell"
)

func (a *app) loopCommand() *cobra.Command {
	var f runFlags
	var l loopflags.Loop
	c := &cobra.Command{
		Use:   "loop [MESSAGE]",
		Short: "Repeat one task until its tests pass, without any file",
		Long: `Does one task again and again, each time in a fresh run that reads the log of the earlier ones, until a
condition holds: the command of --until-test exits with 0, or the answer matches --until-regex. With
both, the first that holds ends the loop; without any it runs --max times. A loop whose condition never
held ends as stopped, with exit code 3.

Without --agent a built-in coding agent works in the current directory, on the model of the config
file's class 'default' or of --model. It reads and writes files there and runs commands without a
network. The command of --until-test is split at spaces and runs without a shell, for at most 60 s.
With --command another agent's program does the work, split in the same way, with its own permissions
and outside of the sandbox. MESSAGE may be "-" for stdin. At the end the files that changed are listed, in a git repository.`,
		Example: `  pawl loop "Make the tests pass" --until-test "go test ./..."
  pawl loop "Port the parser to the new API" --until-test "make check" --max 20 --budget 10
  pawl loop "Shorten README.md; say DONE when nothing can go" --until-regex '\bDONE\b' --model ollama/qwen3
  pawl loop "Fix one more lint warning" --agent agents/fixer.yaml --max 5
  pawl loop "Make the tests pass" --until-test "go test ./..." --command "claude -p"`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("got %d arguments, want MESSAGE; quote a message with spaces", len(args))
			case len(args) == 1 && f.input != "":
				return errors.New("MESSAGE is given twice, also with --input; leave one out")
			case len(args) == 0 && f.input == "" && l.Agent == "": // an agent file may have prompt.task
				return errors.New("MESSAGE is missing")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("max") && (l.Max < 1 || l.Max > 100) {
				return usagef("--max is %d; it must be 1 to 100", l.Max)
			}
			return a.loop(c, &f, l, f.withInput(args))
		},
	}
	f.flags(c)
	fl := c.Flags()
	fl.StringVar(&l.Test, "until-test", "", "end when this `COMMAND` exits with 0, looked at after every iteration")
	fl.StringVar(&l.Pattern, "until-regex", "", "end when the answer of an iteration matches this pattern, in upper or lower case")
	fl.IntVar(&l.Max, "max", 0, "how many iterations there may be, 1 to 100 (default 10, or the agent file's)")
	fl.StringVar(&l.Agent, "agent", "", "the agent `FILE` whose agent does the work")
	fl.StringVar(&l.Command, "command", "", "another agent's `COMMAND` that does the work, such as \"claude -p\"; the task is its last argument")
	fl.BoolVar(&l.Keep, "keep", false, "write the loop to "+loopflags.KeptFile+", an agent file to change and run again")
	return c
}

func (a *app) loop(c *cobra.Command, f *runFlags, l loopflags.Loop, message []string) error {
	var before *worktree.Snapshot
	err := a.run(c, f, job{words: message, input: message, open: func() (launcher, error) {
		return func(input string, o launch.Options) (event.RunStarted, perform.Env, error) {
			started, env, err := l.Launch(input, o)
			if err != nil {
				err = fileError([]string{l.Agent}, err)
			} else if !f.json && f.words == "" && !f.detach {
				files := worktree.Workspace{Dir: o.Workspace, Env: shell.Environment(os.Environ())}
				before, _ = files.Take(c.Context()) // a directory outside a repository has no snapshot
			}
			return started, env, err
		}, nil
	}})
	if before != nil {
		a.changed(c.Context(), before)
	}
	return err
}

// changed reports which files differ from before.
func (a *app) changed(ctx context.Context, before *worktree.Snapshot) {
	text, err := before.Changed(ctx)
	switch {
	case err != nil:
		text = "which files changed cannot be said: " + control.Plain(err)
	case text == "":
		text = "no file changed"
	default:
		text = "changed:\n " + text
	}
	fmt.Fprintln(a.err, harmless(text))
	_ = before.Close() // it is in the directory for temporary files
}
