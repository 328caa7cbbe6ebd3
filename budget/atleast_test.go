package budget_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
)

// The value is the lowest with which the setting does not refuse any more: one unit
// less refuses as before.
func TestTheLeastValueOfALimitIsJustEnough(t *testing.T) {
	call := budget.Call{Input: 2000, Output: 8000, Price: thousands}
	for name, tt := range map[string]struct {
		limits budget.Limits
		spent  budget.Spent
		held   budget.Amount
		call   budget.Call
		after  time.Duration
		want   float64
		unit   float64
	}{
		"money for the shortest answer":  {limits: budget.Limits{USDPerRun: 3}, spent: budget.Spent{USD: 1}, call: call, want: 4.024, unit: 1e-6},
		"what others hold comes back":    {limits: budget.Limits{USDPerRun: 3}, spent: budget.Spent{USD: 1}, held: budget.Amount{USD: 1}, call: call, want: 4.024, unit: 1e-6},
		"the smaller of two caps":        {limits: budget.Limits{USDPerRun: 9, MaxTotalCost: 3}, call: call, want: 3.024, unit: 1e-6},
		"money that is used up":          {limits: budget.Limits{USDPerRun: 3}, spent: budget.Spent{USD: 3}, want: 3.000001, unit: 1e-6},
		"answers":                        {limits: budget.Limits{MaxModelTurns: 3}, spent: budget.Spent{Turns: 3}, call: call, want: 4, unit: 1},
		"tool calls":                     {limits: budget.Limits{MaxToolCalls: 3}, spent: budget.Spent{ToolCalls: 3}, want: 4, unit: 1},
		"tokens in":                      {limits: budget.Limits{MaxInputTokens: 2500}, spent: budget.Spent{Input: 1000}, call: call, want: 3000, unit: 1},
		"tokens out":                     {limits: budget.Limits{MaxOutputTokens: 2000}, spent: budget.Spent{Output: 1000}, call: call, want: 2024, unit: 1},
		"time":                           {limits: budget.Limits{MaxWallSeconds: 2}, spent: budget.Spent{Active: 2500 * time.Millisecond}, want: 2.501, unit: 1e-3},
		"time, with the wait before it":  {limits: budget.Limits{MaxWallSeconds: 2}, spent: budget.Spent{Active: time.Second}, after: 1500 * time.Millisecond, want: 2.501, unit: 1e-3},
		"time without progress":          {limits: budget.Limits{MaxIdleSeconds: 2}, spent: budget.Spent{Idle: time.Second}, after: time.Second, want: 2.001, unit: 1e-3},
		"a wait that still fits":         {limits: budget.Limits{MaxWallSeconds: 2}, spent: budget.Spent{Active: time.Second}, after: 999 * time.Millisecond},
		"what is refused for good":       {limits: budget.Limits{USDPerRun: 1e12}, spent: budget.Spent{USD: 1e12}},
		"what others hold, and no more":  {limits: budget.Limits{USDPerRun: 5}, held: budget.Amount{USD: 4}, call: call},
		"a call that says nothing of it": {limits: budget.Limits{USDPerRun: 5}, spent: budget.Spent{USD: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := budget.Refusal{Setting: budget.CostPerRun}
			late := tt.spent
			late.Active, late.Idle = late.Active+tt.after, late.Idle+tt.after
			if _, r := tt.limits.Admit(late, tt.held, tt.call); r.Setting != "" {
				refusal = r
			} else if setting := tt.limits.BeforeToolCall(late); setting != "" {
				refusal.Setting = setting
			}
			refusal.Call, refusal.After = tt.call, tt.after
			got := tt.limits.AtLeast(refusal, tt.spent)
			if diff := got - tt.want; diff > tt.unit/1e3 || diff < -tt.unit/1e3 {
				t.Fatalf("%v of %s instead of %v", got, refusal.Setting, tt.want)
			}
			if tt.want == 0 {
				return
			}
			for value, enough := range map[float64]bool{tt.want: true, tt.want - tt.unit: false} {
				raised := tt.limits
				must(t, raised.Set(refusal.Setting, value))
				_, r := raised.Admit(late, budget.Amount{}, tt.call)
				if ok := r.Setting != refusal.Setting && raised.BeforeToolCall(late) != refusal.Setting; ok != enough {
					t.Errorf("with %v of %s it goes on: %t", value, refusal.Setting, ok)
				}
			}
		})
	}
}
