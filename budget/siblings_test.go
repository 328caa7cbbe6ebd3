package budget_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/budget"
)

// Three children share USD 1.25, and each call costs at most USD 0.50: an amount that
// one of them holds is not available to the others, in any order of requests.
func TestThreeChildrenShareOneCap(t *testing.T) {
	limits := budget.Limits{USDPerRun: 1.25}
	call := budget.Call{Input: 100, Output: 400, Price: thousands}
	for _, tt := range []struct {
		name string
		// used is what a call of USD 0.50 really takes, in output tokens.
		used  int64
		calls int
	}{
		{"each uses what was set aside", 400, 2},
		{"each uses less", 100, 4},
		{"each uses next to nothing", 0, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ledger budget.Ledger
			var open []string
			var spent budget.Spent
			made, atOnce, waited, refused := 0, 0, false, false
			for step := 0; !refused && step < 1000; step++ {
				a, refusal := limits.Admit(spent, ledger.Held(), call)
				switch {
				case refusal.Setting == "":
					id := fmt.Sprintf("child %d, call %d", step%3, step)
					must(t, ledger.Reserve(budget.Reservation{ID: id, Amount: a}))
					open = append(open, id)
					made, atOnce = made+1, max(atOnce, len(open))
				case refusal.Wait || len(open) > 0:
					waited = waited || refusal.Wait
					spent.USD += float64(call.Input+tt.used) / 1000
					must(t, ledger.Commit(open[0]))
					open = open[1:]
				default:
					refused = true
				}
				if total := spent.USD + ledger.Held().USD; total > limits.USDPerRun+1e-9 {
					t.Fatalf("step %d: USD %v of %v", step, total, limits.USDPerRun)
				}
			}
			if made != tt.calls || atOnce != 2 || !waited || !refused {
				t.Errorf("%d calls, %d at once, waited %t, refused %t; want %d calls, two at once, and a wait", made, atOnce, waited, refused, tt.calls)
			}
		})
	}
}
