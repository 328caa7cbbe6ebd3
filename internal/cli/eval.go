package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/evaluation"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/models"
)

type evalFlags struct {
	json, live, anew bool
	model, judge     string
	runs, atOnce     int
	budget           float64
	noBudget         bool
	approve          string
	junit, against   string
}

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval SUITE",
		Short: "Run the cases of a suite and judge their results",
		Long: `Runs the agents or workflows of a suite on its cases, each in a new directory with the case's files,
and judges what they did. The exit code is 0 if the share of runs that passed reaches the threshold,
else 1; with --against it is also 1 if a case passes less often than before.

All runs draw from one budget. Calls that need an approval are denied unless --approve is all. If the
evaluation is interrupted or its budget is used up, the next call continues it: runs that have ended
are not repeated. 'pawl init --template eval' writes a first suite.`,
		Example: `  pawl eval suite.yaml
  pawl eval suite.yaml --runs 5 --model anthropic/claude-sonnet-4-5 --json > today.json
  pawl eval suite.yaml --against today.json --junit report.xml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.evaluate(c, args[0], &f) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	fl.StringVar(&f.junit, "junit", "", "also write the result to `FILE` as JUnit XML")
	fl.StringVar(&f.against, "against", "", "compare with `FILE`, an earlier result that --json printed")
	fl.IntVar(&f.runs, "runs", 0, "how often each case runs (default 1, or the suite's)")
	fl.IntVar(&f.atOnce, "max-concurrency", 0, "how many runs go on at once (default 4, or the suite's)")
	fl.StringVarP(&f.model, "model", "m", "", "use this model in place of every model of the cases' files")
	fl.StringVar(&f.judge, "judge", "", "use this model as judge (default: the suite's)")
	fl.Float64Var(&f.budget, "budget", 0, "cost limit of all runs in USD (default 5.00, or the suite's)")
	fl.BoolVar(&f.noBudget, "no-budget", false, "no cost limit")
	fl.StringVar(&f.approve, "approve", string(agent.ApproveDeny), "what happens to calls that need an approval: deny or all")
	fl.BoolVar(&f.live, "live", false, "run the cases with a recorded run, too")
	fl.BoolVar(&f.anew, "new", false, "begin anew even if the last evaluation of this suite was interrupted")
	c.MarkFlagsMutuallyExclusive("budget", "no-budget")
	return c
}

// suite reads the suite with the flags that replace its values.
func (f *evalFlags) suite(c *cobra.Command, path string) (*suite.Suite, error) {
	text, err := spec.ReadFile(path)
	if err != nil {
		return nil, fileError([]string{path}, err)
	}
	s, err := suite.Parse(path, text)
	if err != nil {
		return nil, usageError(err)
	}
	for _, n := range []struct {
		flag  string
		value int
		into  **int
	}{{"runs", f.runs, &s.Runs}, {"max-concurrency", f.atOnce, &s.Concurrency}} {
		switch {
		case !c.Flags().Changed(n.flag):
		case n.value < 1:
			return nil, usagef("--%s is %d; it must be at least 1", n.flag, n.value)
		default:
			*n.into = &n.value
		}
	}
	if f.runs > 0 {
		for i := range s.Cases {
			s.Cases[i].Runs = nil
		}
	}
	switch none := float64(budget.None); {
	case f.noBudget:
		s.Budget = &none
	case c.Flags().Changed("budget") && (!(f.budget > 0) || math.IsInf(f.budget, 0)):
		return nil, usagef("--budget is %g; it must be more than 0 (--no-budget removes the limit)", f.budget)
	case f.budget > 0:
		s.Budget = &f.budget
	}
	if f.judge != "" {
		s.Judge = f.judge
	}
	if f.live {
		s = s.Live()
	}
	return s, nil
}

// options returns the options of every run.
func (f *evalFlags) options(host launch.Host) (launch.Options, error) {
	o := launch.Options{Host: host, Flags: launch.Flags{Model: f.model}}
	switch o.Approve = agent.ApproveMode(f.approve); o.Approve {
	case agent.ApproveDeny, agent.ApproveAll:
	default:
		return o, usagef("--approve is %q; it can be deny or all", f.approve)
	}
	var err error
	o.Dir, err = os.Getwd()
	return o, err
}

func (a *app) evaluate(c *cobra.Command, path string, f *evalFlags) error {
	s, err := f.suite(c, path)
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		fmt.Fprintln(a.err, "warning:", harmless(w.String()))
	}
	var before *evaluation.Report
	if f.against != "" {
		if before, err = evaluation.ReadReport(f.against); err != nil {
			return usagef("--against: %w", err)
		}
	}
	host, _, err := a.host(c.Context())
	if err != nil {
		return err
	}
	e := &evaluation.Evaluation{Suite: s, Anew: f.anew, Principal: itsUser()}
	if e.Options, err = f.options(host); err != nil {
		return err
	}
	if e.Dir, err = evalDir(); err != nil {
		return err
	}
	targets, err := e.ReadTargets()
	if err != nil {
		return usageError(err)
	}
	prices := &models.Resolver{Config: host.Config}
	e.Budget = evaluation.NewBudget(s.CapUSD(), prices.Price)
	session, err := a.open(c.Context(), toCreate, func(o *engine.Options) { o.Admission = e.Budget })
	if err != nil {
		return err
	}
	defer session.close()
	e.Engine, e.Store = session.engine, session.store
	e.Find = func(ctx context.Context, name string) (journal.Run, error) { return session.find(ctx, name) }
	p := newPrinter(a.err, screenOf(a.err, os.Getenv))
	e.Done = func(of *suite.Case, t evaluation.Trial) {
		n := tried(of.Name, t)
		p.line(n.style, n.text)
	}
	ctx, stop := interruptible(c.Context())
	defer stop()
	report, err := e.Run(ctx, targets)
	if err != nil {
		return err
	}
	return a.reported(report, before, s.Threshold == nil, f)
}

// evalDir returns the directory of the workspaces of evaluations. It is outside of any
// project, so that a run sees nothing but its own files.
func evalDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the files of the cases: %w", err)
	}
	return filepath.Join(dir, "pawl", "eval"), nil
}

// evaluated is what --json prints.
type evaluated struct {
	*evaluation.Report
	Against *evaluation.Comparison `json:"against,omitempty"`
}

// reported prints a report. byDefault means that the suite sets no threshold: a
// comparison replaces it.
func (a *app) reported(r *evaluation.Report, before *evaluation.Report, byDefault bool, f *evalFlags) error {
	out := evaluated{Report: r}
	if before != nil {
		c := r.Against(before)
		out.Against = &c
	}
	if f.junit != "" {
		if err := writeFile(f.junit, r.JUnit); err != nil {
			return usagef("--junit: %w", err)
		}
	}
	if err := a.show(f.json, out, func() error { return a.printEvaluated(out) }); err != nil {
		return err
	}
	switch {
	case r.Stopped == "budget":
		return withCode(exitStopped)
	case r.Stopped != "":
		return withCode(exitCancelled)
	case out.Against != nil && out.Against.Worse, !r.OK && !(byDefault && out.Against != nil):
		return withCode(exitFailed)
	}
	return nil
}

// writeFile replaces the content of a file.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
