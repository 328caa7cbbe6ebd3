package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/secret"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// Agent is a model with its instructions, tools and limits. Only Model is
// required; what is not set has the default that a careful owner would choose.
// An Agent is a value: it may be copied, changed between runs, and used by any
// number of runs at once.
type Agent struct {
	// Name is shown in lists of runs.
	Name string
	// Model answers. Fallbacks take over, in order and for the rest of the
	// run, when it is overloaded or cannot be reached.
	Model     Target
	Fallbacks []Target
	// System is the text that stands before the conversation.
	System string
	// Tools are what the model may ask for. A tool that is named here runs
	// without asking, unless Approvals names it, it is declared to do what
	// cannot be taken back ([tool.Tool.Risk]), or the call starts programs without
	// a sandbox ([event.Facts].Unsandboxed): such a program could decide about
	// calls in a person's place; see NeverAsk. A run with tools has result.read
	// too, for results that are too long to be shown whole.
	Tools []tool.Tool
	// Agents are other agents that the model may give a task to; see [AgentTool].
	Agents []AgentTool
	// ProviderTools are tools that the provider runs on its side, by its names
	// ("web_search"). What they did is in the answer; none of it permits a
	// tool of the program's.
	ProviderTools []string
	// Approvals are the names of tools whose every call a person decides,
	// through Ask. Without Ask the run parks; see [Run.Approve].
	Approvals []string
	// NeverAsk are the names of tools that run without asking even where they
	// start programs without a sandbox or are declared to do what cannot be taken
	// back, like those with "tools.approvals: never" in an agent file. What is
	// protected asks all the same.
	NeverAsk []string
	// Secrets are values that neither a model nor the journal may see. A tool
	// that may have one gets it in the place of ${secret:NAME} in its
	// arguments; wherever a value turns up otherwise, the name stands instead.
	Secrets []Secret
	// MaySend are the names of tools that are called without asking even once
	// untrusted text and private data have met in a run. Of a tool, Labels says
	// what its results are and whether it can send; see [tool.Tool].
	MaySend []string
	// Ask puts a call to a person and waits for the decision; see [Decision]. An
	// error says that nobody can decide now, and parks the run; a panic rejects
	// the call. It may be called for several calls at once. Its context ends when
	// the call has been decided elsewhere, ApproveWithin is over or the run stops;
	// what it says then decides nothing.
	Ask func(ctx context.Context, a Approval) (Decision, error)
	// ApproveMode says what happens to calls that need an approval. By default
	// Ask decides, and without Ask the run parks.
	ApproveMode ApproveMode
	// ApproveWithin is how long a decision may take, 0 for ever, and OnTimeout
	// what happens when none comes in time: by default the call is rejected. A
	// decision that comes later is none, also on a run that has parked.
	ApproveWithin time.Duration
	OnTimeout     OnTimeout
	// Hooks are heard at their moments of a run, in this order. They make the
	// way of a call narrower, never wider: Approvals hold whatever a hook says.
	Hooks []Hook
	// Limits are the run's budgets. A limit that is 0 has its default
	// (50 cycles, USD 5.00 unless MaxTotalCost is set, one hour, 200 tool
	// calls); a negative one is none.
	Limits Limits
	// Conditions end the run when a cycle meets one of them; the first that
	// matches wins.
	Conditions []Condition
	// OnLimit says whether reaching the cycle cap counts as well.
	OnLimit OnLimit
	// OnNoToolCall says what an answer without tool calls means; by default it
	// is the final answer.
	OnNoToolCall OnNoToolCall
	// Dispatch is the order in which the calls of one answer run.
	Dispatch Dispatch
	// MaxTokens caps one answer; Temperature is the model's default when nil.
	MaxTokens   int
	Temperature *float64
	// Schema, where set, is the JSON Schema of an object that the final answer
	// must match; see [SchemaOf] and [State.Decode]. An answer that does not is
	// fed back with what is wrong with it, and the third of them ends the run
	// as a repeated failure.
	Schema json.RawMessage
	// Cache is what to ask of the providers' prompt caches; by default their
	// ordinary lifetime.
	Cache llm.Caching
}

// Target is a model: its name ("provider/model"), the client that reaches it,
// and its price. A nil Price means that it is not known, so that no limit in
// money can hold: an agent that sets one is refused, and under the default one a
// run begins with a warning. What costs nothing has a Price of nothing. A Price
// without a figure for cached tokens takes them for fresh ones.
type Target struct {
	Name   string
	Client llm.Model
	Price  *llm.Price
}

// Words of other packages that an embedding program needs.
type (
	// Limits are the hard limits of a run.
	Limits = budget.Limits
	// Condition is one declared way for a run to end.
	Condition = stop.Condition
	// Match is what a tool result must show to meet a condition.
	Match = stop.Match
	// Approval is a call that waits for a decision.
	Approval = event.ToolPendingApproval
	// Secret is a value that only tools may see.
	Secret = secret.Secret
	// ApproveMode says who answers when a call needs an approval.
	ApproveMode = agent.ApproveMode
	// OnTimeout is what becomes of a run when nobody decides in time.
	OnTimeout = agent.OnTimeout
	// Outcome is how a run ended.
	Outcome = event.Outcome
	// Event is one record of a run, or a live delta.
	Event = event.Event
	// OnLimit says what reaching the cycle cap means.
	OnLimit = agent.OnLimit
	// OnNoToolCall says what an answer without tool calls means.
	OnNoToolCall = agent.OnNoToolCall
	// Dispatch is the order in which the calls of one answer run.
	Dispatch = agent.Dispatch
)

// Tool makes a tool from a function; see [tool.New].
func Tool[A, R any](name, description string, run func(ctx context.Context, args A) (R, error)) tool.Tool {
	return tool.New(name, description, run)
}

// InvalidAgentError is one thing that is wrong with an [Agent]. All of them are
// reported at once, joined.
type InvalidAgentError struct {
	// Field names the field of Agent.
	Field  string
	Reason string
}

// Error names the field and what is wrong with it.
func (e *InvalidAgentError) Error() string { return "pawl: agent: " + e.Field + ": " + e.Reason }

// Validate reports everything that is wrong with the agent, as joined
// *[InvalidAgentError], without calling anything.
func (a Agent) Validate() error {
	_, _, err := a.build()
	return err
}

// build gives the configuration that a run pins and the environment that its
// effects need.
func (a Agent) build() (agent.Config, engine.Env, error) {
	var problems []error
	report := func(field, format string, args ...any) {
		problems = append(problems, &InvalidAgentError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	targets := a.targets()
	checkTargets(targets, report)
	offered := a.offers(report)
	set, err := tool.NewSet(append(secret.Broker(a.tools(), a.Secrets), offered...)...)
	for _, wrong := range parts(err) {
		report("Tools", "%s", strings.TrimPrefix(wrong.Error(), "tool: "))
	}
	if err == nil {
		checkSecrets(a.Secrets, set, report)
		a.checkNames(set, report)
	}
	a.Hooks = hook.Named(a.Hooks)
	checkHooks(a.Hooks, report)
	a.checkChoices(report)
	a.checkMoney(report)
	checkConditions(a.Conditions, set, report)
	a.checkSchema(report)
	a.checkProviderTools(targets, report)
	if len(problems) > 0 {
		return agent.Config{}, engine.Env{}, errors.Join(problems...)
	}
	env := a.environment(targets, set)
	env.Children = a.children()
	return a.config(targets, set), env, nil
}

func (a Agent) targets() []Target { return append([]Target{a.Model}, a.Fallbacks...) }

// tools are the agent's own and, beside them, the one that reads on in results
// that were too long to be shown whole.
func (a Agent) tools() []tool.Tool {
	named := func(t tool.Tool) bool { return t.Name == result.Name }
	if len(a.Tools)+len(a.Agents) == 0 || slices.ContainsFunc(a.Tools, named) {
		return a.Tools
	}
	return append(slices.Clip(a.Tools), result.New())
}

func checkSecrets(secrets []Secret, set *tool.Set, report func(field, format string, args ...any)) {
	for i, s := range secrets {
		field := fmt.Sprintf("Secrets[%d]", i)
		if err := s.Validate(); err != nil {
			report(field, "%s", strings.TrimPrefix(err.Error(), "secret: "))
		}
		for _, name := range s.Tools {
			switch t, ok := set.Lookup(name); {
			case !ok:
				report(field, "there is no tool %q", name)
			case t.Agent:
				report(field, "%q is an agent, which is given no secret in its task: name the tool that is to have it in that agent's own Secrets", name)
			}
		}
	}
}

func checkTargets(targets []Target, report func(field, format string, args ...any)) {
	seen := map[string]bool{}
	for i, t := range targets {
		field := "Model"
		if i > 0 {
			field = fmt.Sprintf("Fallbacks[%d]", i-1)
		}
		switch {
		case t.Client == nil && t.Name == "":
			report(field, "is missing")
		case t.Client == nil:
			report(field, "%s has no Client", t.Name)
		case !strings.Contains(strings.Trim(t.Name, "/"), "/"):
			report(field, "the name %q is not of the form provider/model", t.Name)
		case seen[t.Name]:
			report(field, "%s is named twice", t.Name)
		case !canBePrice(t.Price):
			report(field, "the price of %s has a figure that is below 0 or no number", t.Name)
		}
		seen[t.Name] = true
	}
}

// canBePrice says that no call can be charged less than nothing, which would give
// back what others have spent.
func canBePrice(p *llm.Price) bool {
	if p == nil {
		return true
	}
	figures := []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite}
	if l := p.Long; l != nil {
		figures = append(figures, l.Input, l.Output, l.CacheRead, l.CacheWrite)
	}
	return !slices.ContainsFunc(figures, func(usd float64) bool { return !(usd >= 0) || math.IsInf(usd, 0) })
}

// wholePrice has what it costs to read a cached token where nobody says: else nine
// tenths of a long run would be free.
func wholePrice(p *llm.Price) *llm.Price {
	if p == nil {
		return nil
	}
	whole := *p
	whole.CacheRead = cmp.Or(whole.CacheRead, whole.Input)
	if p.Long != nil {
		long := *p.Long
		long.CacheRead = cmp.Or(long.CacheRead, long.Input)
		whole.Long = &long
	}
	return &whole
}

// checkMoney reports a cap in money that could not be kept (PRODUCT 6), by the
// agent's models or by those of an offered one, which draws on it. Under the
// default one a model without a known price runs.
func (a Agent) checkMoney(report func(field, format string, args ...any)) {
	limit, _ := a.Limits.CostCap()
	if limit <= 0 {
		return
	}
	check := func(targets []Target, whose string) {
		for _, t := range targets {
			if t.Price == nil {
				report("Limits", "no price is known for %s%s, so the cap of USD %.2f could not be kept: give it a Price, or take the cap away", t.Name, whose, limit)
			}
		}
	}
	check(a.targets(), "")
	for _, o := range a.Agents {
		check(o.Agent.targets(), " of the agent "+o.Name)
	}
}

// warnings are what the owner should know of a run that begins: which models, its
// own and those of the agents that draw from its budget, no cap in money stops.
func warnings(cfg agent.Config) []string {
	if warning := cfg.Limits.Uncounted(cfg.Unpriced()); warning != "" {
		return []string{warning}
	}
	return nil
}

// checkChoices reports settings that have none of their values.
func (a Agent) checkChoices(report func(field, format string, args ...any)) {
	checkChoice(report, "OnLimit", a.OnLimit, agent.OnLimitStopped, agent.OnLimitOK, agent.OnLimitFail)
	checkChoice(report, "OnNoToolCall", a.OnNoToolCall, agent.NoToolCallFinish, agent.NoToolCallNudge, agent.NoToolCallStop)
	checkChoice(report, "Dispatch", a.Dispatch, agent.OrderedGroups, agent.ParallelFirst, agent.ByResource, agent.ParallelAll, agent.Serial)
	checkChoice(report, "Cache", a.Cache, llm.CacheShort, llm.CacheLong, llm.CacheOff)
	checkChoice(report, "ApproveMode", a.ApproveMode, ApproveWait, ApprovePark, ApproveCallback, ApproveBypass)
	checkChoice(report, "OnTimeout", a.OnTimeout, TimeoutReject, TimeoutStop)
	if t := a.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		report("Temperature", "%v is no number", *t)
	}
	for _, limit := range []struct {
		name  string
		value float64
	}{
		{"USDPerRun", a.Limits.USDPerRun}, {"MaxTotalCost", a.Limits.MaxTotalCost},
		{"MaxWallSeconds", a.Limits.MaxWallSeconds}, {"MaxIdleSeconds", a.Limits.MaxIdleSeconds},
	} {
		if math.IsNaN(limit.value) || math.IsInf(limit.value, 1) {
			report("Limits", "%s: %v is no number; a value below 0 is no limit", limit.name, limit.value)
		}
	}
	if a.MaxTokens < 0 {
		report("MaxTokens", "%d is below 0", a.MaxTokens)
	}
	if a.ApproveWithin < 0 {
		report("ApproveWithin", "%s is before the question", a.ApproveWithin)
	}
}

func checkChoice[T ~string](report func(field, format string, args ...any), field string, given T, values ...T) {
	if given == "" || slices.Contains(values, given) {
		return
	}
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	last := len(names) - 1
	report(field, "%q is not %s or %s", given, strings.Join(names[:last], ", "), names[last])
}

// checkProviderTools asks every client whether it knows the tools.
func (a Agent) checkProviderTools(targets []Target, report func(field, format string, args ...any)) {
	if len(a.ProviderTools) == 0 {
		return
	}
	for _, t := range targets {
		if enc, ok := t.Client.(llm.Encoder); ok {
			if _, err := enc.Encode(&llm.Request{ProviderTools: a.ProviderTools}); err != nil {
				report("ProviderTools", "%v", err)
			}
		}
	}
}

// checkConditions reports conditions that mean nothing, and those on a tool that is
// not there: no run could meet one, and it would go on to a limit. What is wrong
// with the tools themselves, which leaves no set, is reported already.
func checkConditions(conditions []Condition, set *tool.Set, report func(field, format string, args ...any)) {
	there := func(name string) bool { _, ok := set.Lookup(name); return ok }
	for i, c := range conditions {
		field := fmt.Sprintf("Conditions[%d]", i)
		switch {
		case c.Kind == stop.TextIncludes && c.Text == "":
			report(field, "text-includes needs a Text")
		case c.Kind == stop.ToolResult && c.Tool == "":
			report(field, "tool-result needs a Tool")
		case c.Kind == stop.ToolResult && set != nil && !there(c.Tool):
			report(field, "there is no tool %q", c.Tool)
		case c.Kind != stop.TextIncludes && c.Kind != stop.ToolResult && c.Kind != stop.BudgetExhausted:
			report(field, "the kind %q is not text-includes, tool-result or budget-exhausted", c.Kind)
		}
	}
}

func (a Agent) config(targets []Target, set *tool.Set) agent.Config {
	cfg := agent.Config{
		System: a.System, MaxTokens: a.MaxTokens, Temperature: a.Temperature, Schema: a.Schema,
		Tools: set.Defs(), ProviderTools: a.ProviderTools, Limits: a.Limits, Conditions: a.Conditions,
		OnLimit: a.OnLimit, OnNoToolCall: a.OnNoToolCall, Dispatch: a.Dispatch,
		Policy: a.rules(), Cache: a.Cache, Hooks: declared(a.Hooks),
	}
	cfg.Approve, cfg.Approvals = a.ApproveMode, agent.Approvals{Seconds: a.ApproveWithin.Seconds(), OnTimeout: a.OnTimeout}
	for _, t := range targets {
		cfg.Targets = append(cfg.Targets, agent.Target{Model: t.Name, Price: wholePrice(t.Price)})
	}
	for _, o := range a.Agents {
		for _, t := range o.Agent.targets() {
			if t.Price == nil {
				cfg.UnpricedBelow = append(cfg.UnpricedBelow, t.Name)
			}
		}
	}
	return cfg.WithDefaultCap().WithDefaults()
}

// rules are what the agent's calls are judged by.
func (a Agent) rules() policy.Rules {
	return policy.Rules{
		Declared: true, Gates: a.Approvals, Open: a.NeverAsk, MaySend: a.MaySend, HighRisk: a.highRisk(),
	}
}

// highRisk are the tools that ask before every call because of what they are
// declared to do.
func (a Agent) highRisk() map[string]event.Risk {
	risks := map[string]event.Risk{}
	for _, t := range a.Tools {
		if policy.High(t.Risk) && !slices.Contains(a.NeverAsk, t.Name) {
			risks[t.Name] = t.Risk
		}
	}
	return risks
}

func (a Agent) environment(targets []Target, set *tool.Set) engine.Env {
	env := engine.Env{Tools: set, Hooks: a.Hooks, Secrets: secret.NewRedactor(a.Secrets...), Model: func(name string) (llm.Model, string, error) {
		for _, t := range targets {
			if t.Name == name {
				_, model, _ := strings.Cut(name, "/")
				return t.Client, model, nil
			}
		}
		return nil, "", fmt.Errorf("%w: %s is not among the agent's models", llm.ErrUnknownModel, name)
	}}
	if a.Ask != nil {
		env.Ask = a.asker
	}
	return env
}
