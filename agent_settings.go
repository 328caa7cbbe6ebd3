package pawl

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool"
)

// ModelSettings are the settings of an agent's requests to its models. The zero value
// leaves each to its default.
type ModelSettings struct {
	// MaxTokens limits the length of one answer. Temperature is the model's default
	// when nil.
	MaxTokens   int
	Temperature *float64
	// StallTimeout is how long a model's stream may send nothing, after the service has
	// begun to answer, before the attempt counts as broken and is retried: 120 seconds
	// by default, at least 1 second and at most 24 hours.
	StallTimeout time.Duration
	// Cache sets how long the providers' prompt caches keep the run's requests; by
	// default their ordinary lifetime.
	Cache llm.Caching
	// ProviderTools are tools that the provider runs itself, by its names
	// ("web_search"). Their results are part of the answer. They do not permit any
	// of the program's own tools.
	ProviderTools []string
}

// Conversation controls an agent's loop between two answers.
type Conversation struct {
	// OnNoToolCall sets what an answer without tool calls means; by default it is
	// the final answer.
	OnNoToolCall OnNoToolCall
	// NudgeText is what the model receives after such an answer if OnNoToolCall is
	// "nudge", at most MaxNudges times in a row: 3 by default, without a limit if
	// negative.
	NudgeText string
	MaxNudges int
	// Dispatch is the order in which the calls of one answer run.
	Dispatch Dispatch
	// Compaction sets when and how a long conversation is shortened.
	Compaction Compaction
	// submits reports that a tool call submits the result, as in a step of a workflow.
	submits bool
}

// Termination sets what ends the run of an agent, beside its final answer, and what
// reaching a limit means.
type Termination struct {
	// Conditions end the run when a cycle meets one of them; the first that
	// matches wins.
	Conditions []Condition
	// OnLimit sets whether reaching the cycle limit counts as a success.
	OnLimit OnLimit
	// OnBudget sets what reaching another limit means, by the limit's setting
	// ("max_tool_calls"); by default the run stops.
	OnBudget map[string]OnBudget
	// OnDenied and OnRejected set the effect of a call that a rule denied or a person
	// rejected: by default the model receives the refusal and the run continues.
	OnDenied, OnRejected OnRefusedCall
	// FailureThreshold is the number of consecutive calls that may fail before the run
	// ends: 20 by default, without a limit if negative.
	FailureThreshold int
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

// checkChoices reports settings with invalid values.
func (a Agent) checkChoices(report func(field, format string, args ...any)) {
	checkChoice(report, "Termination.OnLimit", a.Termination.OnLimit, agent.OnLimitStopped, agent.OnLimitOK, agent.OnLimitFail)
	checkChoice(report, "Conversation.OnNoToolCall", a.Conversation.OnNoToolCall, agent.NoToolCallFinish, agent.NoToolCallNudge, agent.NoToolCallStop)
	checkChoice(report, "Conversation.Dispatch", a.Conversation.Dispatch, agent.OrderedGroups, agent.ParallelFirst, agent.ByResource, agent.ParallelAll, agent.Serial)
	checkChoice(report, "ModelSettings.Cache", a.ModelSettings.Cache, llm.CacheShort, llm.CacheLong, llm.CacheOff)
	checkChoice(report, "Approvals.Mode", a.Approvals.Mode, ApproveWait, ApprovePark, ApproveCallback, ApproveBypass)
	checkChoice(report, "Approvals.OnTimeout", a.Approvals.OnTimeout, TimeoutReject, TimeoutStop)
	if t := a.ModelSettings.Temperature; t != nil && (math.IsNaN(*t) || math.IsInf(*t, 0)) {
		report("ModelSettings.Temperature", "%v is not a number", *t)
	}
	checkLimits(a.Limits, report)
	if a.ModelSettings.MaxTokens < 0 {
		report("ModelSettings.MaxTokens", "%d is below 0", a.ModelSettings.MaxTokens)
	}
	if t := a.ModelSettings.StallTimeout; t != 0 && (t < time.Second || t > 24*time.Hour) {
		report("ModelSettings.StallTimeout", "%s is not from 1 second to 24 hours", t)
	}
	if a.Approvals.Within < 0 {
		report("Approvals.Within", "%s is before the question", a.Approvals.Within)
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
	checkChoice(report, "Termination.OnDenied", a.Termination.OnDenied, agent.RefusedContinue, agent.RefusedStop)
	checkChoice(report, "Termination.OnRejected", a.Termination.OnRejected, agent.RefusedContinue, agent.RefusedStop)
	for _, setting := range slices.Sorted(maps.Keys(a.Termination.OnBudget)) {
		field := "Termination.OnBudget[" + setting + "]"
		if !slices.Contains(budget.Stopping(), setting) {
			report(field, "is no limit that a run can reach")
		}
		checkChoice(report, field, a.Termination.OnBudget[setting], agent.BudgetStop, agent.BudgetOK, agent.BudgetAsk)
	}
	if err := a.Conversation.Compaction.Check(); err != nil {
		report("Conversation.Compaction", "%s", strings.TrimPrefix(err.Error(), "compact: "))
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
	if len(a.ModelSettings.ProviderTools) == 0 {
		return
	}
	for _, t := range targets {
		if enc, ok := t.Client.(llm.Encoder); ok {
			if _, err := enc.Encode(&llm.Request{ProviderTools: a.ModelSettings.ProviderTools}); err != nil {
				report("ModelSettings.ProviderTools", "%v", err)
			}
		}
	}
}

// checkConditions reports meaningless conditions, and conditions on a missing tool: no
// run could meet one, and it would continue to a limit. set is nil if the tools
// themselves are invalid, which is reported already.
func checkConditions(conditions []Condition, set *tool.Set, report func(field, format string, args ...any)) {
	for i, c := range conditions {
		field := fmt.Sprintf("Termination.Conditions[%d]", i)
		c.Check(func(key, expected, format string, args ...any) {
			report(field, "%s %s (expected %s)", key, fmt.Sprintf(format, args...), expected)
		})
		if _, there := set.Lookup(c.Tool); set != nil && c.Tool != "" && !there {
			report(field, "there is no tool %q", c.Tool)
		}
	}
}
