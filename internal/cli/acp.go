package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/acpserver"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/sessions"
)

// sessionFlags are the flags of new sessions.
type sessionFlags struct {
	agent, model string
	budget       float64
	noBudget     bool
	// trust uses the instructions and skills of the working tree without a question.
	trust bool
}

func (f *sessionFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.agent, "agent", "", "agent `FILE` of new sessions")
	c.Flags().StringVarP(&f.model, "model", "m", "", "use this model in place of every model of the file")
	c.Flags().BoolVar(&f.trust, "trust", false, "use the AGENTS.md files and skills of the working tree without a question")
	c.Flags().Float64Var(&f.budget, "budget", 0, "cost limit in USD of each message (default 5.00, or the file's)")
	c.Flags().BoolVar(&f.noBudget, "no-budget", false, "no cost limit")
}

func (a *app) acpCommand() *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{
		Use:   "acp --agent FILE",
		Short: "Work in an editor, over the Agent Client Protocol",
		Long: `Speaks the Agent Client Protocol on stdin and stdout, for editors such as Zed, JetBrains and Neovim. Each message of a
session is a run in the journal, which continues the one before it, so a session can be loaded after a restart of the
editor, and its runs are listed by 'pawl runs'. The tools work in the directory that the editor names.

The editor asks its user about a call that needs approval. 'pawl runs approve' and the page can decide it too; the
first decision counts. A question without a decision stays open, and the next load of the session asks it again.

When the editor cancels a message or closes stdin, the run parks. The log goes to stderr.`,
		Example: `  pawl acp --agent ~/agents/coder.yaml
  pawl --journal ~/.pawl/journal.db acp --agent coder.yaml --budget 2`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.acp(c, f) },
	}
	f.flags(c)
	_ = c.MarkFlagRequired("agent")
	return c
}

// acp serves the sessions of an editor on stdin and stdout.
func (a *app) acp(c *cobra.Command, f sessionFlags) error {
	// Other output of this process must not appear between the frames.
	out := a.out
	a.out, os.Stdout = a.err, os.Stderr
	o, file, err := a.sessionLaunch(c, f)
	if err != nil {
		return err
	}
	s, err := a.open(c.Context(), toCreate)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, stop := interruptible(c.Context())
	defer stop()
	trusted, err := trust(f.trust)
	if err != nil {
		return err
	}
	server := acpserver.New(acpserver.Options{
		Host:      &sessions.Host{Store: s.store, Engine: s.engine, Controller: s.controller, User: itsUser(), File: file, Launch: o},
		MayDecide: s.mayDecide, Trust: trusted, Command: a.invocation(), Version: thisBuild(a.build.Version).Version,
		Log: slog.New(slog.NewTextHandler(a.err, nil)),
	})
	if err := server.Serve(ctx, a.in, out); err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	return nil
}

// sessionLaunch returns the options of new sessions, and a function that reads their file,
// which is checked first if it is named.
func (a *app) sessionLaunch(c *cobra.Command, f sessionFlags) (launch.Options, func() (kinds.File, error), error) {
	path, err := filepath.Abs(f.agent)
	if err != nil {
		return launch.Options{}, nil, usagef("--agent: %w", err)
	}
	o, err := (&runFlags{model: f.model, budget: f.budget, noBudget: f.noBudget, workspace: ".", approve: "ask"}).options(c)
	if err == nil {
		o.Host, _, err = a.host(c.Context())
	}
	if err != nil {
		return o, nil, err
	}
	read := func() (kinds.File, error) { return kinds.Read(path) }
	if f.agent != "" {
		if _, err = read(); err != nil {
			err = fileError([]string{f.agent}, err)
		}
	}
	if o.Journal != "" && err == nil {
		o.Journal, err = filepath.Abs(a.journalPath)
	}
	return o, read, err
}
