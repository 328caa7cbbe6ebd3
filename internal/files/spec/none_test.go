package spec_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestNoneTakesALimitAway(t *testing.T) {
	file, err := os.ReadFile("testdata/none.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a, err := spec.ParseAgent("testdata/none.yaml", file, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range budget.Table() {
		n, number := s.Value(a.Budgets.Limits)
		switch named := strings.Contains(string(file), "  "+s.Name+":"); {
		case named != (n == budget.None):
			t.Errorf("%s is %v", s.Name, n)
		case number && !named && s.Name != budget.CycleCap && s.Name != budget.CostPerRun:
			t.Errorf("%s cannot be none in a file", s.Name)
		}
	}
	if *a.MaxCycles != budget.None || *a.MaxNudges != budget.None || *a.ModelPolicy.Budget.USDPerRun != budget.None {
		t.Errorf("%v cycles, %v nudges, USD %v", *a.MaxCycles, *a.MaxNudges, *a.ModelPolicy.Budget.USDPerRun)
	}
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := spec.Restore("a.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Budgets, again.Budgets); diff != "" {
		t.Errorf("written and read again: %s", diff)
	}
	if err := again.Validate(spec.Options{}); err != nil {
		t.Errorf("as a value of code: %v", err)
	}
}

func TestOnlyLimitsCanBeNone(t *testing.T) {
	for _, text := range []string{
		"budgets: {max_retries_per_tool_call: none}", "budgets: {max_retries_per_model_call: none}",
		"budgets: {max_tool_calls: None}", "budgets: {max_tool_calls: -1}", "max_cycles: -1", "max_cycles: unlimited",
		"context_window: none", "model_policy: {decoding: {max_tokens: none}}",
	} {
		_, err := spec.ParseAgent("a.yaml", []byte("identity: {name: x}\n"+text), spec.Options{})
		var problems decode.Errors
		if !errors.As(err, &problems) {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestOfTwoCycleCapsTheSmallerHolds(t *testing.T) {
	for _, tt := range []struct{ top, inner, want int }{
		{3, 5, 3}, {5, 3, 3}, {budget.None, 5, 5}, {5, budget.None, 5}, {budget.None, budget.None, budget.None},
	} {
		a := spec.Agent{Settings: spec.Settings{MaxCycles: &tt.top}, Iteration: &spec.Iteration{Settings: spec.Settings{MaxCycles: &tt.inner}}}
		if got := *a.Effective().MaxCycles; got != tt.want {
			t.Errorf("%d and %d: %d, want %d", tt.top, tt.inner, got, tt.want)
		}
	}
}
