package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
)

// Agent is a model with its instructions, tools and limits. Only Model is
// required; the other fields have safe defaults. An Agent is a value: it may be
// copied, changed between runs, and used by any number of runs at once.
type Agent struct {
	// Name is shown in lists of runs.
	Name string
	// Model is the model of the run. If it is overloaded or cannot be reached, the
	// Fallbacks are used, in order and for the rest of the run.
	Model     Target
	Fallbacks []Target
	// System is the system prompt.
	System string
	// Tools are the tools that the model may call. A tool listed here runs without
	// asking, except in three cases: Approvals names it, it is declared to be
	// irreversible ([tool.Tool.Risk]), or the call starts programs without a sandbox
	// ([event.Facts].Unsandboxed), because such a program could approve calls itself;
	// see NeverAsk. A run with tools also has result.read, for results that are too
	// long to be shown whole.
	Tools []tool.Tool
	// Agents are other agents that the model may give a task to; see [AgentTool].
	Agents []AgentTool
	// ProviderTools are tools that the provider runs itself, by its names
	// ("web_search"). Their results are part of the answer. They do not permit any
	// of the program's own tools.
	ProviderTools []string
	// Approvals are the names of tools whose calls all need a person's approval,
	// through Ask. Without Ask the run parks; see [Run.Approve].
	Approvals []string
	// NeverAsk are the names of tools that run without asking even if they start
	// programs without a sandbox or are declared to be irreversible, like
	// "tools.approvals: never" in an agent file. Protected paths still ask.
	NeverAsk []string
	// Secrets are values that neither a model nor the journal may see. A tool that
	// may use one receives it in place of ${secret:NAME} in its arguments. Wherever
	// else a value appears, it is replaced by its name.
	Secrets []Secret
	// MaySend are the names of tools that are called without asking even when a run
	// has both untrusted text and private data. [tool.Tool.Labels] declares what a
	// tool's results contain and whether it can send.
	MaySend []string
	// Permissions are rules for the calls of the tools, and protected paths.
	Permissions Permissions
	// Ask asks a person about a call and waits for the [Decision]. An error means
	// that no one can decide now, and parks the run; a panic rejects the call. Ask
	// may be called for several calls at once. Its context ends when the call is
	// decided elsewhere, when ApproveWithin has passed, or when the run stops; its
	// answer is then ignored.
	Ask func(ctx context.Context, a Approval) (Decision, error)
	// ApproveMode sets what happens to calls that need an approval. By default Ask
	// decides, and without Ask the run parks.
	ApproveMode ApproveMode
	// ApproveWithin is the time for a decision; 0 means no limit. OnTimeout sets
	// what happens when it has passed: by default the call is rejected. A later
	// decision is ignored, also for a parked run.
	ApproveWithin time.Duration
	OnTimeout     OnTimeout
	// Hooks run at their stages of a run, in this order. They can restrict a call
	// but not permit one: Approvals apply whatever a hook answers.
	Hooks []Hook
	// Limits are the limits of the run. A limit that is 0 has its default (50
	// cycles, USD 5.00 unless MaxTotalCost is set, one hour, 200 tool calls); a
	// negative one removes the limit.
	Limits Limits
	// OnBudget sets what reaching a limit means, by the limit's setting
	// ("max_tool_calls"); by default the run stops.
	OnBudget map[string]OnBudget
	// Conditions end the run when a cycle meets one of them; the first that
	// matches wins.
	Conditions []Condition
	// OnLimit sets whether reaching the cycle limit counts as a success.
	OnLimit OnLimit
	// OnNoToolCall sets what an answer without tool calls means; by default it is
	// the final answer.
	OnNoToolCall OnNoToolCall
	// NudgeText is what the model receives after such an answer if OnNoToolCall is
	// "nudge", at most MaxNudges times in a row: 3 by default, without a limit if
	// negative.
	NudgeText string
	MaxNudges int
	// OnDenied and OnRejected set the effect of a call that a rule denied or a person
	// rejected: by default the model receives the refusal and the run continues.
	OnDenied, OnRejected OnRefusedCall
	// FailureThreshold is the number of consecutive calls that may fail before the run
	// ends: 20 by default, without a limit if negative.
	FailureThreshold int
	// Compaction sets when and how a long conversation is shortened.
	Compaction Compaction
	// Dispatch is the order in which the calls of one answer run.
	Dispatch Dispatch
	// MaxTokens limits the length of one answer. Temperature is the model's default
	// when nil.
	MaxTokens   int
	Temperature *float64
	// StallTimeout is how long a model's stream may send nothing, after the service has
	// begun to answer, before the attempt counts as broken and is retried: 120 seconds
	// by default, at least 1 second and at most 24 hours.
	StallTimeout time.Duration
	// Schema, if set, is the JSON Schema of the object that the final answer must
	// be; see [SchemaOf] and [State.Decode]. An answer that does not match is
	// returned to the model with the violations. The third one ends the run as a
	// repeated failure.
	Schema json.RawMessage
	// Cache sets how long the providers' prompt caches keep the run's requests; by
	// default their ordinary lifetime.
	Cache llm.Caching
	// submits reports that a tool call submits the result, as in a step of a workflow.
	submits bool
}

// Types of other packages that an embedding program needs.
type (
	// Target is a model: its name, the client that calls it, and its price.
	// models.Named returns one by its name.
	Target = llm.Target
	// Limits are the limits of a run.
	Limits = budget.Limits
	// Condition is a declared condition that ends a run.
	Condition = stop.Condition
	// Match is the text that a tool result must contain to meet a condition.
	Match = stop.Match
	// Approval is a call that waits for a decision.
	Approval = event.ToolPendingApproval
	// Secret is a value that only tools may see.
	Secret = secret.Secret
	// ApproveMode sets who decides about a call that needs an approval.
	ApproveMode = agent.ApproveMode
	// OnTimeout sets what happens to a run when a decision does not come in time.
	OnTimeout = agent.OnTimeout
	// Outcome is how a run ended.
	Outcome = event.Outcome
	// Event is one record of a run, or a live delta.
	Event = event.Event
	// OnLimit sets the effect of reaching the cycle limit.
	OnLimit = agent.OnLimit
	// OnNoToolCall sets the meaning of an answer without tool calls.
	OnNoToolCall = agent.OnNoToolCall
	// Dispatch is the order in which the calls of one answer run.
	Dispatch = agent.Dispatch
	// OnBudget sets the effect of reaching a limit.
	OnBudget = agent.OnBudget
	// OnRefusedCall sets the effect of a denied or rejected call.
	OnRefusedCall = agent.OnRefusedCall
	// Compaction sets when and how a conversation is shortened.
	Compaction = compact.Settings
)

// Tool makes a tool from a function; see [tool.New].
func Tool[A, R any](name, description string, run func(ctx context.Context, args A) (R, error)) tool.Tool {
	return tool.New(name, description, run)
}

// InvalidAgentError is one error in an [Agent]. All errors are reported at
// once, joined.
type InvalidAgentError struct {
	// Field names the field of Agent.
	Field  string
	Reason string
}

// Error names the field and what is wrong with it.
func (e *InvalidAgentError) Error() string { return "pawl: agent: " + e.Field + ": " + e.Reason }

// Validate reports all errors in the agent, as joined *[InvalidAgentError],
// without calling anything.
func (a Agent) Validate() error {
	_, err := a.prepare(false)
	return err
}

// prepare returns what all runs of the agent share. child reports that another run
// starts them.
func (a Agent) prepare(child bool) (*assembly.Prepared, error) {
	var problems []error
	report := func(field, format string, args ...any) {
		problems = append(problems, &InvalidAgentError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	targets := a.targets()
	checkTargets(targets, report)
	agents := a.offers(report)
	set, err := tool.NewSet(append(slices.Clip(a.tools()), toolsOf(agents)...)...)
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
	a.checkLoop(report)
	a.Permissions.check(set, report)
	cfg := a.config(targets)
	if err := assembly.Affordable(cfg); err != nil {
		report("Limits", "%s: name the price of each model, or take the limit away", strings.TrimPrefix(err.Error(), "budget: "))
	}
	checkConditions(a.Conditions, set, report)
	a.checkSchema(report)
	a.checkProviderTools(targets, report)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return assembly.Definition{
		Name: a.Name, Config: cfg, Child: child, Host: a.host(targets),
		Tools: a.tools(), Secrets: a.Secrets, Hooks: a.Hooks, Agents: agents, Compiled: set,
	}.Prepare()
}

func (a Agent) targets() []Target { return append([]Target{a.Model}, a.Fallbacks...) }

// tools returns the agent's tools and result.read.
func (a Agent) tools() []tool.Tool {
	var tools []tool.Tool
	if len(a.Tools)+len(a.Agents) > 0 {
		tools = assembly.WithResults(a.Tools)
	}
	if a.submits {
		tools = append(tools, tool.ForResult(a.Schema))
	}
	return tools
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

// canBePrice reports whether a price cannot make a call's cost negative, which would
// return money that others have spent.
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

// wholePrice defaults the price of a cached token to that of a fresh one: otherwise
// nine tenths of a long run would be free.
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

// checkChoices reports settings with invalid values.
func (a Agent) checkChoices(report func(field, format string, args ...any)) {
	checkChoice(report, "OnLimit", a.OnLimit, agent.OnLimitStopped, agent.OnLimitOK, agent.OnLimitFail)
	checkChoice(report, "OnNoToolCall", a.OnNoToolCall, agent.NoToolCallFinish, agent.NoToolCallNudge, agent.NoToolCallStop)
	checkChoice(report, "Dispatch", a.Dispatch, agent.OrderedGroups, agent.ParallelFirst, agent.ByResource, agent.ParallelAll, agent.Serial)
	checkChoice(report, "Cache", a.Cache, llm.CacheShort, llm.CacheLong, llm.CacheOff)
	checkChoice(report, "ApproveMode", a.ApproveMode, ApproveWait, ApprovePark, ApproveCallback, ApproveBypass)
	checkChoice(report, "OnTimeout", a.OnTimeout, TimeoutReject, TimeoutStop)
	if t := a.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		report("Temperature", "%v is not a number", *t)
	}
	checkLimits(a.Limits, report)
	if a.MaxTokens < 0 {
		report("MaxTokens", "%d is below 0", a.MaxTokens)
	}
	if t := a.StallTimeout; t != 0 && (t < time.Second || t > 24*time.Hour) {
		report("StallTimeout", "%s is not from 1 second to 24 hours", t)
	}
	if a.ApproveWithin < 0 {
		report("ApproveWithin", "%s is before the question", a.ApproveWithin)
	}
}

func checkLimits(l Limits, report func(field, format string, args ...any)) {
	for _, s := range budget.Table() {
		if n, _ := s.Value(l); math.IsNaN(n) || math.IsInf(n, 1) {
			report("Limits", "%s: %v is not a number; a value below 0 is no limit", s.Field(), n)
		}
	}
}

// checkLoop reports meaningless settings of the loop.
func (a Agent) checkLoop(report func(field, format string, args ...any)) {
	checkChoice(report, "OnDenied", a.OnDenied, agent.RefusedContinue, agent.RefusedStop)
	checkChoice(report, "OnRejected", a.OnRejected, agent.RefusedContinue, agent.RefusedStop)
	for _, setting := range slices.Sorted(maps.Keys(a.OnBudget)) {
		field := "OnBudget[" + setting + "]"
		if !slices.Contains(budget.Stopping(), setting) {
			report(field, "is no limit that a run can reach")
		}
		checkChoice(report, field, a.OnBudget[setting], agent.BudgetStop, agent.BudgetOK, agent.BudgetAsk)
	}
	if err := a.Compaction.Check(); err != nil {
		report("Compaction", "%s", strings.TrimPrefix(err.Error(), "compact: "))
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

// checkProviderTools checks that every client knows the tools.
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

// checkConditions reports meaningless conditions, and conditions on a missing tool: no
// run could meet one, and it would continue to a limit. set is nil if the tools
// themselves are invalid, which is reported already.
func checkConditions(conditions []Condition, set *tool.Set, report func(field, format string, args ...any)) {
	for i, c := range conditions {
		field := fmt.Sprintf("Conditions[%d]", i)
		c.Check(func(key, expected, format string, args ...any) {
			report(field, "%s %s (expected %s)", key, fmt.Sprintf(format, args...), expected)
		})
		if _, there := set.Lookup(c.Tool); set != nil && c.Tool != "" && !there {
			report(field, "there is no tool %q", c.Tool)
		}
	}
}

// config returns the agent's configuration of the loop.
func (a Agent) config(targets []Target) agent.Config {
	cfg := agent.Config{
		System: a.System, MaxTokens: a.MaxTokens, Temperature: a.Temperature, Schema: a.Schema,
		ProviderTools: a.ProviderTools, Limits: a.Limits, Conditions: a.Conditions,
		OnLimit: a.OnLimit, OnNoToolCall: a.OnNoToolCall, Dispatch: a.Dispatch,
		NudgeText: a.NudgeText, MaxNudges: a.MaxNudges, OnDenied: a.OnDenied, OnRejected: a.OnRejected,
		FailureThreshold: a.FailureThreshold, OnBudget: a.OnBudget, Compact: a.Compaction,
		Policy: a.rules(), Cache: a.Cache, StallTimeout: a.StallTimeout, UnpricedBelow: a.unpricedBelow(),
	}
	if a.submits {
		cfg.Schema, cfg.Result, cfg.ResultText = nil, tool.ResultName, true
	}
	cfg.Approve, cfg.Approvals = a.ApproveMode, agent.Approvals{Seconds: a.ApproveWithin.Seconds(), OnTimeout: a.OnTimeout}
	for _, t := range targets {
		cfg.Targets = append(cfg.Targets, agent.Target{Model: t.Name, Price: wholePrice(t.Price)})
	}
	return cfg
}

// unpricedBelow returns the models without a price of all agents that are offered.
func (a Agent) unpricedBelow() []string {
	var names []string
	for _, o := range a.Agents {
		for _, t := range o.Agent.targets() {
			if t.Price == nil {
				names = append(names, t.Name)
			}
		}
		names = append(names, o.Agent.unpricedBelow()...)
	}
	return names
}

// highRisk returns the tools that ask before every call because of their declared risk.
func (a Agent) highRisk() map[string]event.Risk {
	risks := map[string]event.Risk{}
	for _, t := range a.Tools {
		if policy.High(t.Risk) && !slices.Contains(a.NeverAsk, t.Name) {
			risks[t.Name] = t.Risk
		}
	}
	return risks
}

// host returns the agent's part of the environment of its runs.
func (a Agent) host(targets []Target) perform.Env {
	env := perform.Env{Model: func(name string) (llm.Model, string, error) {
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
