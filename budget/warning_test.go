package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
)

func warnings(l budget.Limits, s budget.Spent, warned *budget.Levels) []string {
	var got []string
	for _, g := range []budget.Group{budget.OfCalls, budget.OfCycles} {
		var given []budget.Warning
		l.Warn(s, warned, g, func(w budget.Warning) { given = append(given, w) })
		for _, w := range given {
			got = append(got, fmt.Sprintf("%s %d", w.Setting, w.Percent))
			*warned = warned.Warned(w.Setting, w.Percent)
		}
	}
	return got
}

func TestEachShareOfALimitWarnsOnce(t *testing.T) {
	limits := budget.Limits{USDPerRun: 10}
	var warned budget.Levels
	for _, step := range []struct {
		usd  float64
		want []string
	}{
		{4.99, nil}, {5, []string{"usd_per_run 50"}}, {7.9, nil}, {8, []string{"usd_per_run 80"}}, {9.99, nil},
		{10, []string{"usd_per_run 100"}}, {12, nil},
	} {
		if diff := cmp.Diff(step.want, warnings(limits, budget.Spent{USD: step.usd}, &warned)); diff != "" {
			t.Errorf("at %v: %s", step.usd, diff)
		}
	}
	var late budget.Levels
	if diff := cmp.Diff([]string{"usd_per_run 80"}, warnings(limits, budget.Spent{USD: 9}, &late)); diff != "" {
		t.Errorf("two shares at once: %s", diff)
	}
}

func TestEveryLimitThatIsUsedUpWarns(t *testing.T) {
	spent := budget.Spent{Cycles: 1, Turns: 1, ToolCalls: 1, Input: 1, Output: 1, USD: 1, Active: time.Second}
	for setting := range map[string]bool{
		"usd_per_run": true, "max_total_cost": true, "max_cycles": true, "max_model_turns": true,
		"max_tool_calls": true, "max_input_tokens": true, "max_output_tokens": true, "max_wall_time_seconds": true,
	} {
		var l budget.Limits
		if err := l.Set(setting, 2); err != nil {
			t.Fatal(err)
		}
		var warned budget.Levels
		if diff := cmp.Diff([]string{setting + " 50"}, warnings(l, spent, &warned)); diff != "" {
			t.Error(diff)
		}
		if err := l.Set(setting, 100); err != nil {
			t.Fatal(err)
		}
		warned = l.Raised(spent, warned)
		if got := warnings(l, spent, &warned); got != nil {
			t.Errorf("%s of 100 was raised in time and warns: %v", setting, got)
		}
		if err := l.Set(setting, 2); err != nil {
			t.Fatal(err)
		}
		if got := warnings(l, spent, &warned); len(got) != 1 {
			t.Errorf("a limit that was raised does not warn again: %v", got)
		}
	}
}

func TestOnlyBeyondALimitIsAnOverrun(t *testing.T) {
	for _, tt := range []struct {
		limits budget.Limits
		spent  budget.Spent
		want   string
	}{
		{budget.Limits{}, budget.Spent{USD: 9, Input: 9, Output: 9}, ""},
		{budget.Limits{USDPerRun: 2}, budget.Spent{USD: 2}, ""},
		{budget.Limits{USDPerRun: 2}, budget.Spent{USD: 2 + 1e-9}, ""}, // what sums of money may be off by
		{budget.Limits{USDPerRun: 2}, budget.Spent{USD: 2.01}, "usd_per_run"},
		{budget.Limits{MaxTotalCost: 2}, budget.Spent{USD: 2.01}, "max_total_cost"},
		{budget.Limits{MaxInputTokens: 2}, budget.Spent{Input: 3}, "max_input_tokens"},
		{budget.Limits{MaxOutputTokens: 2}, budget.Spent{Output: 3}, "max_output_tokens"},
		{budget.Limits{MaxCycles: 2}, budget.Spent{Cycles: 3}, ""},
	} {
		if w, over := tt.limits.Overrun(tt.spent); w.Setting != tt.want || over != (tt.want != "") {
			t.Errorf("%+v with %+v: %+v", tt.limits, tt.spent, w)
		}
	}
}
