package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/launch"
	"github.com/spf13/cobra"
)

// streams are a command's standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes (PRODUCT 3).
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitStopped   = 3
	exitParked    = 4
	exitCancelled = 130
)

// exitError ends the process with a code. The message, if any, is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{code: exitUsage, err: err} }

// app is what the commands share.
type app struct {
	streams
	journalPath string
}

func execute(args []string, s streams) int {
	a := &app{streams: s}
	root := &cobra.Command{
		Use:           "pawl",
		Short:         "Run agents that loop until done",
		Long:          "Pawl runs agents that loop until done: it calls a model, runs the tools the model asks for,\nfeeds the results back, and repeats until something that you declared says stop.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w\nSee '%s --help'", err, c.CommandPath()))
	})
	root.PersistentFlags().StringVar(&a.journalPath, "journal", defaultJournal(), "path of the journal ($PAWL_JOURNAL)")
	root.AddCommand(a.runCommand(), a.checkCommand(), a.runsCommand(), a.versionCommand())
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintln(s.err, "pawl:", exit.err)
		}
		return exit.code
	}
	fmt.Fprintln(s.err, "pawl:", err)
	return exitUsage
}

func defaultJournal() string {
	if p := os.Getenv("PAWL_JOURNAL"); p != "" {
		return p
	}
	return filepath.Join(".pawl", "journal.db")
}

// open opens the journal and an engine on it.
func (a *app) open(ctx context.Context, mustExist bool) (*engine.Engine, journal.Store, func(), error) {
	if mustExist {
		if _, err := os.Stat(a.journalPath); err != nil {
			return nil, nil, nil, usageError(fmt.Errorf("there is no journal at %s; name one with --journal", a.journalPath))
		}
	}
	store, err := sqlite.Open(ctx, a.journalPath, sqlite.Options{})
	if err != nil {
		return nil, nil, nil, &exitError{code: exitFailed, err: err}
	}
	e := engine.New(store, launch.Machine, engine.Options{})
	return e, store, func() {
		_ = e.Close()
		_ = store.Close()
	}, nil
}

// exitOf is the exit code of an outcome.
func exitOf(o *event.Outcome) int {
	switch {
	case o.Status == event.StatusCancelled:
		return exitCancelled
	case o.OK:
		return exitOK
	case o.Status == event.StatusStopped:
		return exitStopped
	}
	return exitFailed
}
