package cli

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// runFlags are the flags that every run takes.
type runFlags struct {
	model     string
	input     string
	workspace string
	maxCycles string
	budget    float64
	noBudget  bool
	timeout   string
	limitArgs []string
	approve   string
	maxDepth  int
	atOnce    int
	noStream  bool
	detach    bool
	web       bool
	from      string
	record    string
	vars      []string
	attach    []string
	output
}

func (f *runFlags) flags(c *cobra.Command) {
	f.settings(c)
	fl := c.Flags()
	fl.StringVar(&f.workspace, "workspace", ".", "directory that the tools work in")
	fl.BoolVar(&f.noStream, "no-stream", false, "ask the provider for whole answers")
	fl.BoolVar(&f.detach, "detach", false, "run in the background, outliving this terminal, and print the run id")
	attachFlag(c, &f.attach, "give an image, a PDF or a text `FILE` with the input (may be repeated)")
	approveFlag(c, &f.approve)
	recordFlag(c, &f.record)
	f.output.flagsUnless(c, "with --detach")
}

// settings adds the flags that change values of the file.
func (f *runFlags) settings(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVarP(&f.model, "model", "m", "", "use this model in place of every model of the file")
	fl.StringVarP(&f.input, "input", "p", "", "the INPUT, as a flag")
	fl.StringVar(&f.maxCycles, "max-cycles", "", "stop after this many cycles, or none for no limit (default 50, or the file's)")
	fl.IntVar(&f.maxDepth, "max-depth", 0, "maximum depth of the tree of runs, this run included (default 8)")
	fl.IntVar(&f.atOnce, "max-concurrency", 0, "how many agents of a workflow may be at work at once (default 64, or less where the file says so)")
	fl.Float64Var(&f.budget, "budget", 0, "cost limit in USD (default 5.00, or the file's)")
	fl.BoolVar(&f.noBudget, "no-budget", false, "no cost limit")
	fl.StringVar(&f.timeout, "timeout", "", "wall-time budget, for example 10m, or none (default 1h, or the file's)")
	fl.StringArrayVar(&f.limitArgs, "limit", nil, "change a limit, as setting=value, for example max_tool_calls=400; 'pawl runs budget --help' lists them")
	fl.StringArrayVar(&f.vars, "var", nil, "set a variable of the file, as name=value")
}

// none is the word that removes a limit.
const none = "none"

// approveFlag describes its default in its own words: without the flag the file
// decides.
func approveFlag(c *cobra.Command, mode *string) {
	c.Flags().StringVar(mode, "approve", string(agent.ApproveAsk), "who decides gated calls: ask, deny or all (default: approvals.mode of the file, or ask)")
	c.Flags().Lookup("approve").DefValue = ""
}

func approveMode(mode string) (agent.ApproveMode, error) {
	switch m := agent.ApproveMode(mode); m {
	case agent.ApproveAsk, agent.ApproveDeny, agent.ApproveAll:
		return m, nil
	}
	return "", usagef("--approve is %q; it can be ask, deny or all", mode)
}

// options converts the flags to launch options; its errors are usage errors.
func (f *runFlags) options(c *cobra.Command) (launch.Options, error) {
	o := launch.Options{Flags: launch.Flags{Model: f.model, NoBudget: f.noBudget, NoStream: f.noStream}}
	var err error
	if o.Approve, err = approveMode(f.approve); err != nil {
		return o, err
	}
	if o.Workspace, err = filepath.Abs(f.workspace); err != nil {
		return o, usagef("--workspace: %w", err)
	}
	if err := f.limits(c, &o); err != nil {
		return o, err
	}
	if f.model != "" && !strings.Contains(f.model, "/") {
		return o, usagef("--model is %q; it must be provider/model, for example scripted/answers.yaml", f.model)
	}
	if err := textual("--model", f.model); err != nil {
		return o, err
	}
	if o.Vars, err = parseVars(f.vars); err != nil {
		return o, err
	}
	if o.Attachments, err = attach.Files(f.attach...); err != nil {
		return o, usagef("--attach: %s", control.Plain(err))
	}
	if err := recordAnew(f.record); err != nil {
		return o, err
	}
	if !c.Flags().Changed("approve") {
		o.Approve = "" // the file's own, or ask
	}
	if f.from != "" && !c.Flags().Changed("workspace") {
		o.Workspace = "" // that of the continued run
	}
	if o.Workspace != "" {
		if _, err := directory("--workspace", f.workspace); err != nil {
			return o, err
		}
	}
	o.Dir, err = os.Getwd()
	return o, err
}

func (f *runFlags) limits(c *cobra.Command, o *launch.Options) error {
	set := func(setting string, value float64) {
		o.Limits = append(o.Limits, launch.Limit{Setting: setting, Value: value})
	}
	switch n, err := strconv.Atoi(f.maxCycles); {
	case f.maxCycles == none:
		set(budget.CycleCap, budget.None)
	case c.Flags().Changed("max-cycles") && (err != nil || n < 1):
		return usagef("--max-cycles is %q; it must be a whole number of at least 1, or none", f.maxCycles)
	case n > 0:
		set(budget.CycleCap, float64(n))
	}
	if c.Flags().Changed("max-depth") && (f.maxDepth < 1 || f.maxDepth > event.MaxDepth) {
		return usagef("--max-depth is %d; it must be 1 to %d", f.maxDepth, event.MaxDepth)
	}
	if c.Flags().Changed("max-concurrency") && f.atOnce < 1 {
		return usagef("--max-concurrency is %d; it must be at least 1", f.atOnce)
	}
	o.MaxDepth, o.MaxConcurrency = f.maxDepth, f.atOnce
	if err := f.limitArguments(c, o); err != nil {
		return err
	}
	if c.Flags().Changed("budget") {
		switch {
		case f.noBudget:
			return usagef("--budget and --no-budget exclude each other")
		case !(f.budget > 0) || math.IsInf(f.budget, 0):
			return usagef("--budget is %g; it must be more than 0 (--no-budget removes the limit)", f.budget)
		}
		o.BudgetUSD = &f.budget
	}
	switch d, err := time.ParseDuration(f.timeout); {
	case f.timeout == none:
		set(budget.WallTime, budget.None)
	case c.Flags().Changed("timeout") && (err != nil || d <= 0):
		return usagef("--timeout is %q; it must be a duration like 90s or 10m, or none", f.timeout)
	case d > 0:
		set(budget.WallTime, d.Seconds())
	}
	return nil
}

// limitArguments reads the settings of --limit. It rejects a limit that is set
// twice, because it is unclear which value is meant.
func (f *runFlags) limitArguments(c *cobra.Command, o *launch.Options) error {
	setBy := make(map[string]string)
	for _, s := range budget.Table() {
		for _, flag := range []string{s.Flag, "no-budget"} {
			if c.Flags().Changed(flag) && (flag == s.Flag || s.Kind == budget.Money) {
				setBy[s.Name] = flag
			}
		}
	}
	for _, arg := range f.limitArgs {
		setting, text, ok := strings.Cut(arg, "=")
		if !ok {
			return usagef("--limit is %q; it must be setting=value, for example max_tool_calls=400", arg)
		}
		value, err := limitValue(setting, text)
		if err != nil {
			return usagef("--limit %s: %w", arg, err)
		}
		switch flag := setBy[setting]; flag {
		case "":
			setBy[setting] = "limit"
		case "limit":
			return usagef("--limit %s is given twice", setting)
		default:
			return usagef("--limit %s and --%s exclude each other", arg, flag)
		}
		o.Limits = append(o.Limits, launch.Limit{Setting: setting, Value: value})
	}
	return nil
}

func parseVars(pairs []string) (map[string]string, error) {
	vars := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usagef("--var is %q; it must be name=value", pair)
		}
		if _, twice := vars[name]; twice {
			return nil, usagef("--var %s is given twice", name)
		}
		if err := textual("--var "+name, value); err != nil {
			return nil, err
		}
		vars[name] = value
	}
	return vars, nil
}
