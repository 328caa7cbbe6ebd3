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

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
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
	// asking, except in three cases: Approvals.Tools names it, it is declared to be
	// irreversible ([tool.Tool.Risk]), or the call starts programs without a sandbox
	// ([event.Facts].Unsandboxed), because such a program could approve calls itself;
	// see Approvals.Never. A run with tools also has result.read, for results that are too
	// long to be shown whole.
	Tools []tool.Tool
	// Agents are other agents that the model may give a task to; see [AgentTool].
	Agents []AgentTool
	// Secrets are values that neither a model nor the journal may see. A tool that
	// may use one receives it in place of ${secret:NAME} in its arguments. Wherever
	// else a value appears, it is replaced by its name.
	Secrets []Secret
	// Permissions are rules for the calls of the tools, and protected paths.
	Permissions Permissions
	// Approvals set which calls a person decides about, and how.
	Approvals Approvals
	// Hooks run at their stages of a run, in this order. They can restrict a call
	// but not permit one: Approvals apply whatever a hook answers.
	Hooks []Hook
	// Limits are the limits of the run. A limit that is 0 has its default (50
	// cycles, USD 5.00 unless MaxTotalCost is set, one hour, 200 tool calls); a
	// negative one removes the limit.
	Limits Limits
	// Termination sets what else ends the run, and what reaching a limit means.
	Termination Termination
	// Conversation controls the loop between two answers.
	Conversation Conversation
	// ModelSettings apply to each request to a model.
	ModelSettings ModelSettings
	// Schema, if set, is the JSON Schema of the object that the final answer must
	// be; see [SchemaOf] and [State.Decode]. An answer that does not match is
	// returned to the model with the violations. The third one ends the run as a
	// repeated failure.
	Schema json.RawMessage
}

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
		a.Approvals.checkNames(set, report)
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
	checkConditions(a.Termination.Conditions, set, report)
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
	if a.Conversation.submits {
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

// config returns the agent's configuration of the loop.
func (a Agent) config(targets []Target) agent.Config {
	m, c, t := a.ModelSettings, a.Conversation, a.Termination
	cfg := agent.Config{
		System: a.System, Schema: a.Schema, ResultText: len(a.Schema) > 0, Limits: a.Limits, Policy: a.rules(), UnpricedBelow: a.unpricedBelow(),
		MaxTokens: m.MaxTokens, Temperature: m.Temperature, StallTimeout: m.StallTimeout, Cache: m.Cache, ProviderTools: m.ProviderTools,
		OnNoToolCall: c.OnNoToolCall, NudgeText: c.NudgeText, MaxNudges: c.MaxNudges, Dispatch: c.Dispatch, Compact: c.Compaction,
		Conditions: t.Conditions, OnLimit: t.OnLimit, OnBudget: t.OnBudget, OnDenied: t.OnDenied, OnRejected: t.OnRejected,
		FailureThreshold: t.FailureThreshold,
	}
	if a.Conversation.submits {
		cfg.Schema, cfg.Result, cfg.ResultText = nil, tool.ResultName, true
	}
	cfg.Approve, cfg.Approvals = a.Approvals.Mode, agent.Approvals{Seconds: a.Approvals.Within.Seconds(), OnTimeout: a.Approvals.OnTimeout}
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
		if policy.High(t.Risk) && !slices.Contains(a.Approvals.Never, t.Name) {
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
	if a.Approvals.Ask != nil {
		env.Ask = a.Approvals.answer
	}
	return env
}
