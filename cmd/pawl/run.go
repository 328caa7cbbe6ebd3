package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/spec"
	"github.com/spf13/cobra"
)

// runFlags are the flags that every run takes.
type runFlags struct {
	model     string
	workspace string
	maxCycles int
	budget    float64
	noBudget  bool
	timeout   string
	approve   string
	noStream  bool
	json      bool
	deltas    bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE [INPUT]",
		Short: "Run an agent",
		Example: "  pawl run agent.yaml \"Fix the failing test\"\n" +
			"  git diff | pawl run reviewer.yaml -\n" +
			"  pawl run agent.yaml \"Try it\" --model scripted/answers.yaml --json",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, f, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.model, "model", "", "use this model in place of every model of the file")
	fl.StringVar(&f.workspace, "workspace", ".", "directory that the tools work in")
	fl.IntVar(&f.maxCycles, "max-cycles", 0, "stop after this many cycles")
	fl.Float64Var(&f.budget, "budget", 0, "cap in USD")
	fl.BoolVar(&f.noBudget, "no-budget", false, "no cap in USD")
	fl.StringVar(&f.timeout, "timeout", "", "wall-time budget, for example 10m")
	fl.StringVar(&f.approve, "approve", "ask", "who decides gated calls: ask, deny or all")
	fl.BoolVar(&f.noStream, "no-stream", false, "ask the provider for whole answers")
	a.outputFlags(c, &f)
	return c
}

func (a *app) outputFlags(c *cobra.Command, f *runFlags) {
	c.Flags().BoolVar(&f.json, "json", false, "print one event a line on stdout and nothing else")
	c.Flags().BoolVar(&f.deltas, "deltas", false, "with --json, print the live events too")
}

func (a *app) run(c *cobra.Command, f runFlags, args []string) error {
	input := ""
	if len(args) == 2 {
		input = args[1]
	}
	if input == "-" {
		b, err := io.ReadAll(a.in)
		if err != nil {
			return fmt.Errorf("read the input from stdin: %w", err)
		}
		input = string(b)
	}
	o, err := f.options(c)
	if err != nil {
		return usageError(err)
	}
	started, env, err := launch.Agent(args[0], input, o)
	if err != nil {
		var problems spec.Errors
		if errors.As(err, &problems) || errors.Is(err, os.ErrNotExist) {
			return usageError(err)
		}
		return &exitError{code: exitUsage, err: err}
	}
	e, _, closeAll, err := a.open(c.Context(), false)
	if err != nil {
		return err
	}
	defer closeAll()
	ctx, stop := interruptible(c.Context())
	defer stop()
	r, err := e.Start(ctx, started, "", env)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	return a.follow(r, f)
}

func (f runFlags) options(c *cobra.Command) (launch.Options, error) {
	o := launch.Options{
		Model: f.model, MaxCycles: f.maxCycles, NoBudget: f.noBudget, Whole: f.noStream,
		Approve: agent.ApproveMode(f.approve),
	}
	switch o.Approve {
	case agent.ApproveAsk, agent.ApproveDeny, agent.ApproveAll:
	default:
		return o, fmt.Errorf("--approve is %q; it can be ask, deny or all", f.approve)
	}
	if c.Flags().Changed("budget") {
		o.BudgetUSD = &f.budget
	}
	if f.timeout != "" {
		d, err := parseTimeout(f.timeout)
		if err != nil {
			return o, err
		}
		o.TimeoutSeconds = d.Seconds()
	}
	var err error
	if o.Workspace, err = filepath.Abs(f.workspace); err != nil {
		return o, fmt.Errorf("--workspace: %w", err)
	}
	if info, err := os.Stat(o.Workspace); err != nil || !info.IsDir() {
		return o, fmt.Errorf("--workspace %s is not a directory", f.workspace)
	}
	o.Dir, err = os.Getwd()
	return o, err
}

// interruptible ends its context with [engine.ErrInterrupted] at the first
// Ctrl-C, so that the run parks; the second one kills as usual.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ch:
			signal.Stop(ch)
			cancel(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}

// follow shows a run until it ends or parks, and gives its exit code.
func (a *app) follow(r *engine.Run, f runFlags) error {
	view := a.view(f)
	for e, err := range r.Events(context.Background(), !f.json || f.deltas) {
		if err != nil {
			return &exitError{code: exitFailed, err: err}
		}
		if err := view.show(e); err != nil {
			return &exitError{code: exitFailed, err: fmt.Errorf("write the output: %w", err)}
		}
	}
	state, err := r.Wait(context.Background())
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if state.Outcome != nil {
		if code := exitOf(state.Outcome); code != exitOK {
			return &exitError{code: code}
		}
		return nil
	}
	if state.Parked != nil && state.Parked.Reason == event.ParkInterrupted {
		return &exitError{code: exitCancelled}
	}
	return &exitError{code: exitParked}
}

func (a *app) view(f runFlags) view {
	if f.json {
		return &jsonView{out: a.out}
	}
	return &textView{out: a.out, err: a.err}
}

// firstLine is the first line of a text, cut to a width for progress lines.
func firstLine(s string, width int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}
