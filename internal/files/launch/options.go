package launch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/servers"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/web"
)

// Options holds what a run needs besides its file: the user's flags, the host's
// services, and what was prepared from both.
type Options struct {
	Flags
	Host
	prepared
}

// Flags holds the user's flags, which replace values of the file.
type Flags struct {
	// Model replaces every model of the file.
	Model string
	// Workspace is the directory that the tools work in.
	Workspace string
	// BudgetUSD replaces the file's caps in money; NoBudget removes them.
	BudgetUSD *float64
	NoBudget  bool
	// Limits replace single limits of the file, after all of the above.
	Limits  []Limit
	Approve agent.ApproveMode
	// NoStream asks the provider for whole answers instead of streams.
	NoStream bool
	// Attachments are images and files sent with the input.
	Attachments []llm.Media
	// Mode replaces the mode of the file's permissions.
	Mode policy.Mode
	// Granted are what a person allowed or denied earlier in the session of the run.
	Granted []event.Permission
	// Unread lets a run continue without a message, to read those that arrived too late
	// for the ended one.
	Unread bool
	// Compact shortens the conversation that a run continues before its first request.
	Compact bool
	// Vars are the values of ${name} in the prompt.
	Vars map[string]string
	// MaxDepth bounds the depth of the tree of runs, including the run itself; 0
	// means the default.
	MaxDepth int
	// MaxConcurrency bounds the descendants that work at once; 0 leaves it to the
	// file and the default.
	MaxConcurrency int
	// Dir resolves relative paths of flags.
	Dir string
	// Tree has the instructions and skills of the working tree that the user trusts.
	Tree guidance.Found
}

// Limit is a new value of one of [budget.Settings]; [budget.None] takes the
// limit away.
type Limit struct {
	Setting string
	Value   float64
}

// Host holds the services of the process that drives the run. Unlike the flags,
// which are pinned, it also applies to a resumed run.
type Host struct {
	// Dress changes the environment of each child run, just as the caller does with
	// the environment of the root; nil changes nothing.
	Dress func(*perform.Env)
	// Getenv looks up keys and endpoints; nil means os.Getenv.
	Getenv func(string) string
	// Replay opens the model that answers from a recorded run; nil means that there
	// is no journal.
	Replay func(run string) (llm.Model, error)
	// Config is the owner's config file, see [ReadConfig].
	Config models.Config
	// Limiter is shared by all runs of a process; nil means no limit.
	Limiter *transport.Limiter
	// Pages is shared by all runs of a process; if nil, each run has its own.
	Pages *web.PageLimit
	// Sandbox is what this machine supports; nil runs commands without a sandbox.
	Sandbox *sandbox.Machine
	// Journal is the path of the journal. No command may read it and no tool may
	// write it, because a call could otherwise approve itself.
	Journal string
	// Databases are the addresses of a journal that is no file. No sandbox reaches them.
	Databases []netip.AddrPort
	// Buffers returns the buffers of an editor in a workspace, nil for none.
	Buffers func(workspace string) fs.Buffers
	// Here is what this machine has for runs that may be on other machines.
	Here workplace.Here
	// Learn takes each token of a login that a run uses, so that it is not stored or
	// shown; nil drops it.
	Learn func(value string)
	// ServerLog returns the file for what the MCP servers of a run print as errors; nil
	// keeps nothing of it.
	ServerLog func(run string) string
	// RemoveLogs removes the logs of a removed run from this machine; nil removes
	// nothing.
	RemoveLogs func(run string) error
}

func (h Host) buffersIn(workspace string) fs.Buffers {
	if h.Buffers == nil {
		return nil
	}
	return h.Buffers(workspace)
}

// prepared holds what was prepared for a run and for the runs that it starts.
type prepared struct {
	// confined is the sandbox of the run's commands. hookPins holds the programs of
	// its hooks, and nested the repositories in its workspace, as they were when
	// the run began.
	confined confinement
	hookPins []event.HookFile
	// commandPins holds the programs of tools.commands as they were then.
	commandPins []event.CommandTool
	// served holds the MCP servers of the run; nil where none are to be reached.
	served *servers.Servers
	// skills are those that the model can read.
	skills []event.SkillFile
	// deferred lists the tools that the requests of a resumed run do not name.
	deferred []string
	nested   nested
	// tree is shared with the run's descendants. started marks a child run; source
	// is then its file.
	tree *tree
	// forAgents holds the limits that a workflow passes to its agents.
	forAgents []Limit
	started   bool
	// checking means that no run starts, so what only a command line or a workspace
	// can supply is not required.
	checking bool
	source   string
	// protected holds the protected patterns that a run began with.
	protected []policy.Pattern
}

// seams returns the options that apply to a resumed run.
func (o Options) seams() Options {
	return Options{Host: o.Host, prepared: prepared{tree: o.tree, source: o.source}}
}

// limits returns the file's budgets. If two of them limit the same thing, the
// smaller one wins; unset limits stay unset.
func limits(a *spec.Agent) budget.Limits {
	l := a.Budgets.Limits
	l.MaxCycles, l.USDPerRun = value(a.Effective().MaxCycles), value(a.CapUSD())
	return l
}

// CapUSD returns the most that a run of a file may cost: the file's cap, the
// default if the file sets none, and infinity if the file removes the limit.
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

// CapUSD returns the smallest limit in money, or infinity if there is none.
func CapUSD(l budget.Limits) float64 {
	if usd, setting := l.CostCap(); setting != "" {
		return usd
	}
	return math.Inf(1)
}

// replace replaces limits by the flags that set them.
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

// money returns warnings about what the run may cost.
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

// cappedByDefault reports whether the cap in money of an earlier run is the
// default. Older versions recorded that only in the warnings.
func cappedByDefault(cfg *agent.Config, started *event.RunStarted) bool {
	l := cfg.Limits
	return cfg.DefaultCap || l.USDPerRun == budget.DefaultUSDPerRun && l.MaxTotalCost <= 0 &&
		slices.ContainsFunc(started.Warnings, func(w string) bool {
			return strings.HasPrefix(w, fmt.Sprintf("the run stops at USD %.2f, the default c", l.USDPerRun)) // "cap" or "cost limit"
		})
}

// affordable is [assembly.Affordable] with advice for a command line.
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

// approvals returns the file's settings for gated calls. A flag that sets the
// approver wins.
func approvals(s *spec.ApprovalSettings, cfg *agent.Config) {
	if s == nil {
		return
	}
	cfg.Approve = cmp.Or(cfg.Approve, agent.ApproveMode(s.Mode))
	cfg.Approvals = agent.Approvals{Seconds: float64(value(s.Timeout)), OnTimeout: agent.OnTimeout(s.OnTimeout)}
}

// CheckCall validates a call of a run's tool before policy judges it: the tool must
// exist, and the arguments must match its schema. It runs nothing.
func CheckCall(started event.RunStarted, c llm.ToolCall) (*event.Problem, error) {
	a, err := restore(started)
	if err != nil {
		return nil, err
	}
	o := Options{Flags: Flags{Workspace: started.Workspace}, prepared: prepared{skills: started.Skills}}
	env, err := o.environment(a, o.resolver(a.Dir))
	if err != nil {
		return nil, err
	}
	return env.Tools.Resolve(c.CallID, c).Problem, assembly.Closing(env, nil)
}

// Wires opens the models of a run to inspect their wire requests without sending
// any, so API keys need not be set.
func Wires(started event.RunStarted, o Options) func(target string) (llm.Model, string, error) {
	o = o.keyless()
	o.Dir = cmp.Or(started.Options["dir"], o.Dir)
	return o.resolver(started.Options["files"]).Open
}

// keyless returns options that open models for inspection only.
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

// unsupervised warns about commands that run outside a sandbox with nothing that
// ends the processes they leave behind.
func (o Options) unsupervised(tools *tool.Set) []string {
	if !o.confined.exposes(tools) || o.Sandbox == nil || o.Sandbox.Unsupervised() == "" {
		return nil
	}
	return []string{fmt.Sprintf("commands run outside a sandbox and without a supervisor (%s): what one of them starts in a session of its own may outlive its call",
		o.Sandbox.Unsupervised())}
}

// unmet explains, by index, which conditions of a valid file no result can meet. A
// run that waits for one would end by a limit, after paying for every cycle.
func unmet(a *spec.Agent) map[int]string {
	all := offering(a, BuiltinTools())
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

// system returns the system text of an agent: the file's, the instructions of the working
// tree, and the skills. Only the root of a tree of runs has those of the working tree.
func (o Options) system(a *spec.Agent) string {
	parts := []string{a.System}
	if !o.started {
		parts = append(parts, o.Tree.System())
	}
	parts = append(parts, guidance.List(o.skills))
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

// texts returns the files of the instructions.
func (o Options) texts(a *spec.Agent) []event.TextFile {
	all := slices.Clone(a.Texts)
	if !o.started {
		for _, t := range o.Tree.Texts {
			all = append(all, t.TextFile)
		}
	}
	return all
}

// skillsOf returns the skills of the file and those of the working tree that have other
// names.
func (o Options) skillsOf(a *spec.Agent) []event.SkillFile {
	all := slices.Clone(a.SkillFiles)
	if o.started {
		return all
	}
	for _, s := range o.Tree.Skills {
		if !slices.ContainsFunc(a.SkillFiles, func(own event.SkillFile) bool { return own.Name == s.Name }) {
			all = append(all, s)
		}
	}
	return all
}
