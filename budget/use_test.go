package budget_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
)

func TestUsesHaveTheLimitsThatBoundTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		limits budget.Limits
		spent  budget.Spent
		want   []budget.Use
	}{
		"none": {budget.Limits{}, budget.Spent{Cycles: 3}, nil},
		"money and cycles": {
			budget.Limits{MaxCycles: 5, USDPerRun: 2, MaxResultChars: 100}, budget.Spent{Cycles: 3, USD: 0.5},
			[]budget.Use{{"max_cycles", "cycles", 3, 5}, {"usd_per_run", "", 0.5, 2}},
		},
		"time without a cap in money": {
			budget.Limits{MaxWallSeconds: 60, USDPerRun: budget.None}, budget.Spent{Active: 90 * time.Second},
			[]budget.Use{{"max_wall_time_seconds", "", 90, 60}},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.limits.Uses(tc.spent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
