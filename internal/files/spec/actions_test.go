package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

const actionsFile = "model_policy: {primary: {model: scripted/s.yaml}}\nidentity: {name: a}\nbudgets: {actions: "

// refusedAs holds that a file is refused with these words, or read where there
// are none.
func refusedAs(t *testing.T, what, file, want string) {
	t.Helper()
	_, err := spec.ParseAgent("a.yaml", []byte(file), spec.Options{})
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestABudgetsActionNamesALimitThatEndsARunAndWhatThatMeans(t *testing.T) {
	for text, want := range map[string]string{
		"{max_tool_calls: ask, usd_per_run: ok}": "",
		"{max_tool_calls: park}":                 "budgets.actions.max_tool_calls: is \"park\" (expected one of stop, ok, ask)",
		"{max_parallel_tool_calls: ask}":         "budgets.actions.max_parallel_tool_calls: is no limit that ends a run",
		"{max_cycles: ask}":                      "budgets.actions.max_cycles: is the cycle cap; on_limit says what reaching it means",
	} {
		file := actionsFile + text + "}\n"
		refusedAs(t, text, file, want)
	}
}

// What a condition says of the money and what an action says must not differ:
// the one would win over the other without a word.
func TestAnActionForMoneyDoesNotContradictACondition(t *testing.T) {
	const conflict = "a.yaml:3:34: budgets.actions.usd_per_run: is %q, and the condition budget-exhausted ends the run as ok " +
		"when the money is used up (expected ok, or a file without the condition budget-exhausted)"
	for text, want := range map[string]string{
		"{usd_per_run: ask}":                          fmt.Sprintf(conflict, "ask"),
		"{usd_per_run: stop}":                         fmt.Sprintf(conflict, "stop"),
		"{usd_per_run: ok}":                           "",
		"{max_model_turns: ask}":                      "",
		"{usd_per_run: never}":                        "(expected one of stop, ok, ask)",
		"{max_total_cost: ask}":                       "budgets.actions.max_total_cost: is \"ask\"",
		"{max_total_cost: ok, max_model_turns: stop}": "",
	} {
		file := actionsFile + text + "}\niteration: {termination_conditions: [{kind: text-includes, text: done}, {kind: budget-exhausted}]}\n"
		refusedAs(t, text, file, want)
	}
}
