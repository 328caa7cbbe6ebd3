package spec_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/spec"
)

func TestABudgetsActionNamesALimitThatEndsARunAndWhatThatMeans(t *testing.T) {
	for text, want := range map[string]string{
		"{max_tool_calls: ask, usd_per_run: ok}": "",
		"{max_tool_calls: park}":                 "budgets.actions.max_tool_calls: is \"park\" (expected one of stop, ok, ask)",
		"{max_parallel_tool_calls: ask}":         "budgets.actions.max_parallel_tool_calls: is no limit that ends a run",
		"{max_cycles: ask}":                      "budgets.actions.max_cycles: is no limit that ends a run",
	} {
		file := "model_policy: {primary: {model: scripted/s.yaml}}\nidentity: {name: a}\nbudgets: {actions: " + text + "}\n"
		_, err := spec.ParseAgent("a.yaml", []byte(file), spec.Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err := compiled(t, "agent").Validate(instance(t, []byte(file))); (err == nil) != (want == "") {
			t.Errorf("the schema says of %s: %v", text, err)
		}
	}
}
