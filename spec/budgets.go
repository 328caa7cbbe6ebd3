package spec

import (
	"math"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/stop"
)

// Budgets are the ten budgets of the harness (HAR-41 to HAR-50), the time
// without progress and the size of a request; nil means the default, [None]
// that there is no limit.
type Budgets struct {
	MaxModelTurns    *int     `yaml:"max_model_turns,omitempty" none:"yes"`
	MaxToolCalls     *int     `yaml:"max_tool_calls,omitempty" none:"yes"`
	MaxParallelTools *int     `yaml:"max_parallel_tool_calls,omitempty" none:"yes"`
	MaxWallSeconds   *float64 `yaml:"max_wall_time_seconds,omitempty" none:"yes"`
	MaxInputTokens   *int64   `yaml:"max_input_tokens,omitempty" none:"yes"`
	MaxOutputTokens  *int64   `yaml:"max_output_tokens,omitempty" none:"yes"`
	MaxTotalCost     *float64 `yaml:"max_total_cost,omitempty" none:"yes"`
	MaxResultChars   *int     `yaml:"max_tool_result_chars,omitempty" none:"yes"`
	MaxModelRetries  *int     `yaml:"max_retries_per_model_call,omitempty"`
	MaxToolRetries   *int     `yaml:"max_retries_per_tool_call,omitempty"`
	MaxIdleSeconds   *float64 `yaml:"max_no_progress_seconds,omitempty" none:"yes"`
	MaxRequestTokens *int64   `yaml:"max_context_tokens_per_request,omitempty" none:"yes"`
	// Actions says for each limit what reaching it means (REQUIREMENTS C-7).
	Actions BudgetActions `yaml:"actions,omitempty"`
}

// BudgetActions says for a limit, by its name, what reaching it means: stop,
// ok (a stop that counts as well) or ask (the run parks, and goes on once
// somebody has raised the limit).
type BudgetActions map[string]string

func (*BudgetActions) expected() string { return "a mapping from a limit to stop, ok or ask" }

// JSONSchema is the schema of the mapping.
func (*BudgetActions) JSONSchema() map[string]any {
	properties := map[string]any{}
	for _, setting := range budget.Stopping() {
		properties[setting] = map[string]any{"enum": []string{"stop", "ok", "ask"}}
	}
	return map[string]any{
		"type": "object", "properties": properties, "additionalProperties": false,
		"description": "What reaching a limit means: stop (the default) ends the run, ok ends it and counts as well, " +
			"ask parks it until somebody has raised the limit. For example {max_tool_calls: ask}.",
	}
}

func (b *Budgets) validate(r *report, a *Agent) {
	const many = 1_000_000_000
	limit(r, "budgets.max_model_turns", b.MaxModelTurns, 1, many)
	limit(r, "budgets.max_tool_calls", b.MaxToolCalls, 1, many)
	limit(r, "budgets.max_parallel_tool_calls", b.MaxParallelTools, 1, 1024)
	limit(r, "budgets.max_wall_time_seconds", b.MaxWallSeconds, 0.001, many)
	limit(r, "budgets.max_input_tokens", b.MaxInputTokens, 1, math.MaxInt64)
	limit(r, "budgets.max_output_tokens", b.MaxOutputTokens, 1, math.MaxInt64)
	money(r, "budgets.max_total_cost", b.MaxTotalCost)
	limit(r, "budgets.max_tool_result_chars", b.MaxResultChars, 1, 100_000_000)
	within(r, "budgets.max_retries_per_model_call", b.MaxModelRetries, 0, 100)
	within(r, "budgets.max_retries_per_tool_call", b.MaxToolRetries, 0, 100)
	limit(r, "budgets.max_no_progress_seconds", b.MaxIdleSeconds, 0.001, many)
	limit(r, "budgets.max_context_tokens_per_request", b.MaxRequestTokens, 1, math.MaxInt64)
	for _, setting := range sortedKeys(b.Actions) {
		path := "budgets.actions." + setting
		if setting == "max_cycles" {
			r.at(path, "on_limit", "is the cycle cap; on_limit says what reaching it means")
			continue
		}
		if !slices.Contains(budget.Stopping(), setting) {
			r.at(path, "one of "+strings.Join(budget.Stopping(), ", "), "is no limit that ends a run")
			continue
		}
		oneOf(r, path, b.Actions[setting], "stop", "ok", "ask")
		if action := b.Actions[setting]; (action == "stop" || action == "ask") && budget.IsMoney(setting) && a.endsOnBudget() {
			r.at(path, "ok, or a file without the condition budget-exhausted",
				"is %q, and the condition budget-exhausted ends the run as ok when the money is used up", action)
		}
	}
}

// endsOnBudget says that a condition of the file is about the money.
func (a *Agent) endsOnBudget() bool {
	return a.Iteration != nil && slices.ContainsFunc(a.Iteration.TerminationConditions, func(c Condition) bool {
		return c.Kind == string(stop.BudgetExhausted)
	})
}
