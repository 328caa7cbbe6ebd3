package launch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/web"
)

// Options are what a run is made of beside its file: what the user said, what the
// host offers, and what was prepared from both.
type Options struct {
	Flags
	Host
	prepared
}

// Flags are what the user said, in the place of what the file says.
type Flags struct {
	// Model replaces every model of the file.
	Model string
	// Workspace is the directory that the tools work in.
	Workspace string
	// BudgetUSD replaces the file's caps in money, NoBudget removes them.
	BudgetUSD *float64
	NoBudget  bool
	// Limits replace single limits of the file, after all of the above.
	Limits  []Limit
	Approve agent.ApproveMode
	// NoStream asks the provider for whole answers instead of streams.
	NoStream bool
	// Attachments are images and files that go with the input.
	Attachments []llm.Media
	// Vars are the values of the prompt's ${name}.
	Vars map[string]string
	// MaxDepth is how deep the tree of runs may be, the run itself counted; 0 leaves
	// the default.
	MaxDepth int
	// MaxConcurrency is how many runs below it may be at work at once; 0 leaves that
	// to the file and the default.
	MaxConcurrency int
	// Dir is the directory that relative paths of flags are relative to.
	Dir string
}

// Limit is a new value of one of [budget.Settings]; [budget.None] takes the
// limit away.
type Limit struct {
	Setting string
	Value   float64
}

// Host is what the process offers in which a run is driven. It counts as well where
// a run goes on, whose flags were pinned when it began.
type Host struct {
	// Dress changes the environment of each run that the run starts, as whoever
	// starts that does with its own; nil changes nothing.
	Dress func(*engine.Env)
	// Getenv looks keys and endpoints up; nil means os.Getenv.
	Getenv func(string) string
	// Replay opens the model that answers from a recorded run; nil where there
	// is no journal.
	Replay func(run string) (llm.Model, error)
	// Config is what the owner's config file says, see [ReadConfig].
	Config models.Config
	// Limiter is shared by all runs of a process; nil limits nothing.
	Limiter *transport.Limiter
	// Pages are shared by all runs of a process; nil are each run's own.
	Pages *web.PageLimit
	// Sandbox is what this machine can do; nil runs commands without one.
	Sandbox *sandbox.Machine
	// Journal is the path of the journal, which no command may read and no tool
	// may write: a call could otherwise approve itself.
	Journal string
}

// prepared is what was made ready for a run, and for the runs that it starts.
type prepared struct {
	// confined is where the commands of the run run, and hookPins what the programs
	// of its hooks held when it began, and nested the repositories that were
	// within its workspace then.
	confined confinement
	hookPins []event.HookFile
	// commandPins are the programs of tools.commands as they were then.
	commandPins []event.CommandTool
	nested      nested
	// tree is what the run shares with those that it starts. started says that another run
	// starts it, and source is then its file.
	tree *tree
	// forAgents are the limits that a workflow hands to its agents.
	forAgents []Limit
	started   bool
	// checking says that no run begins: what only its command line or its workspace
	// could say is not asked for.
	checking bool
	source   string
	// protected is what the rules protect that a run began with.
	protected []policy.Pattern
}

// seams are the options that count where a run is resumed.
func (o Options) seams() Options {
	return Options{Host: o.Host, prepared: prepared{tree: o.tree, source: o.source}}
}

// limits are the file's budgets, the smaller one where two of them limit the
// same thing. What nobody set is left to the defaults.
func limits(a *spec.Agent) budget.Limits {
	l := a.Budgets.Limits
	l.MaxCycles, l.USDPerRun = value(a.Effective().MaxCycles), value(a.CapUSD())
	return l
}

// CapUSD is the most that a run of a file may cost by what the file says, the default
// where it does not say, and infinite where it says that there is no limit.
func (k Kind) CapUSD(path string, text []byte) (float64, error) {
	read := k.Limits
	if read == nil {
		read = spec.Restore
	}
	a, err := read(path, text)
	if err != nil {
		return 0, err
	}
	return CapUSD(agent.Config{Limits: limits(a)}.WithDefaultCap().Limits), nil
}

// CapUSD is the limit in money that limits come to, infinite where there is none.
func CapUSD(l budget.Limits) float64 {
	if usd, setting := l.CostCap(); setting != "" {
		return usd
	}
	return math.Inf(1)
}

// replace puts the flags in the place of the limits that they are about.
func (o Options) replace(cfg *agent.Config) error {
	switch l := &cfg.Limits; {
	case o.BudgetUSD != nil && *o.BudgetUSD <= 0:
		return fmt.Errorf("launch: the budget of USD %g must be above 0", *o.BudgetUSD)
	case o.NoBudget:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = 0, 0, false
	case o.BudgetUSD != nil:
		l.USDPerRun, l.MaxTotalCost, cfg.DefaultCap = *o.BudgetUSD, 0, false
	}
	var problems []error
	for _, limit := range o.Limits {
		if err := cfg.SetLimit(limit.Setting, limit.Value); err != nil {
			problems = append(problems, fmt.Errorf("launch: %w", err))
		}
	}
	return errors.Join(problems...)
}

// raises reports whether a flag sets a limit.
func (o Options) raises() bool {
	return len(o.Limits) > 0 || o.NoBudget || o.BudgetUSD != nil
}

// money says what the owner should know about what the run may cost.
func money(cfg agent.Config) (warnings []string) {
	priceKnown := func(t agent.Target) bool { return t.Price != nil }
	if limit, _ := cfg.Limits.CostCap(); cfg.DefaultCap && slices.ContainsFunc(cfg.Targets, priceKnown) {
		warnings = append(warnings, stopsByDefault(limit))
	}
	return append(warnings, assembly.Warnings(cfg)...)
}

func stopsByDefault(limit float64) string {
	return fmt.Sprintf("the run stops at USD %.2f, the default cost limit; "+
		"--budget, --no-budget or model_policy.budget.usd_per_run change it", limit)
}

// cappedByDefault reports whether nobody has set the cap in money of an earlier
// run. Those of older versions say it in their warnings alone.
func cappedByDefault(cfg *agent.Config, started *event.RunStarted) bool {
	l := cfg.Limits
	return cfg.DefaultCap || l.USDPerRun == budget.DefaultUSDPerRun && l.MaxTotalCost <= 0 &&
		slices.ContainsFunc(started.Warnings, func(w string) bool {
			return strings.HasPrefix(w, fmt.Sprintf("the run stops at USD %.2f, the default c", l.USDPerRun)) // "cap" or "cost limit"
		})
}

// affordable is [assembly.Affordable], and says what a command line can do about it.
func affordable(cfg agent.Config) error { return unaffordable(assembly.Affordable(cfg)) }

func unaffordable(err error) error {
	if _, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return fmt.Errorf("launch: %w; use a model with a known price, name its price in the config file, or run it with --no-budget", err)
	}
	return err
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// approvals is what the file says of gated calls. A flag that says who answers
// them holds in its place.
func approvals(s *spec.ApprovalSettings, cfg *agent.Config) {
	if s == nil {
		return
	}
	cfg.Approve = cmp.Or(cfg.Approve, agent.ApproveMode(s.Mode))
	cfg.Approvals = agent.Approvals{Seconds: float64(value(s.Timeout)), OnTimeout: agent.OnTimeout(s.OnTimeout)}
}

// CheckCall says what stands against a call of a run's tool before policy would
// judge it: no such tool, or arguments that do not fit its schema. It runs
// nothing.
func CheckCall(started event.RunStarted, c llm.ToolCall) (*event.Problem, error) {
	a, err := restore(started)
	if err != nil {
		return nil, err
	}
	o := Options{Flags: Flags{Workspace: started.Workspace}}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return nil, err
	}
	return env.Tools.Resolve(c.CallID, c).Problem, assembly.Closing(env, nil)
}

// Wires opens the models of a run for what their wires would send, without
// anything being sent: a key that is not set is no hindrance.
func Wires(started event.RunStarted, o Options) func(target string) (llm.Model, string, error) {
	o = o.keyless()
	o.Dir = cmp.Or(started.Options["dir"], o.Dir)
	return o.resolver(started.Options["files"]).Open
}

// keyless are the options with which models are opened for their wires alone.
func (o Options) keyless() Options {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	o.Getenv = func(name string) string {
		if v := getenv(name); v != "" || !strings.HasSuffix(name, "_KEY") {
			return v
		}
		return "none"
	}
	return o
}

// unsupervised warns of commands that run outside a sandbox with nothing beside
// them that ends what they leave behind.
func (o Options) unsupervised(tools *tool.Set) []string {
	if !o.confined.exposes(tools) || o.Sandbox == nil || o.Sandbox.Unsupervised() == "" {
		return nil
	}
	return []string{fmt.Sprintf("commands run outside a sandbox and without a supervisor (%s): what one of them starts in a session of its own may outlive its call",
		o.Sandbox.Unsupervised())}
}

// unmet says of those conditions of a valid file that no result can meet, by their
// places, why: a run that waits for one ends by a limit, and pays for all the cycles
// before.
func unmet(a *spec.Agent) map[int]string {
	all := offering(a, anyBuiltin())
	declare(all, a.Tools)
	tools, err := tool.NewSet(all...)
	if err != nil {
		return nil
	}
	said := policy.Rules{Mode: policy.Mode(a.Tools.Mode)}
	if p := a.Tools.Permissions; p != nil {
		said.Filesystem = policy.Filesystem(p.Filesystem)
	}
	for _, rule := range a.Tools.Rules {
		said.Rules = append(said.Rules, rule.Policy())
	}
	why := map[int]string{}
	for i, c := range a.Iteration.TerminationConditions {
		if c.Tool == "" {
			continue
		}
		_, has := tools.Lookup(c.Tool)
		rule, hidden := assembly.Hides(said, tools, c.Tool)
		switch {
		case !has:
			why[i] = "the agent has no " + c.Tool + ", because tools.allow does not name it"
		case hidden:
			why[i] = "every call of " + c.Tool + " is denied by " + rule
		case c.Match.ExitCode != nil && c.Tool != shellTool:
			why[i] = c.Tool + " gives no exit code"
		}
	}
	return why
}
