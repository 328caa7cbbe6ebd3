package budget_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
)

// A dollar a thousand tokens, so that the arithmetic can be seen.
var thousands = &llm.Price{Input: 1000, Output: 1000}

// rows: HAR-11, HAR-12, HAR-22, HAR-45..47
func TestACallIsAdmittedAtItsWorst(t *testing.T) {
	call := budget.Call{Input: 2000, Output: 8000, Price: thousands}
	for _, tt := range []struct {
		name   string
		limits budget.Limits
		spent  budget.Spent
		held   budget.Amount
		call   budget.Call
		want   budget.Amount
		refuse budget.Refusal
	}{
		{name: "no limit", call: call, want: budget.Amount{USD: 10, Input: 2000, Output: 8000}},
		{name: "exactly what is left", limits: budget.Limits{USDPerRun: 12}, spent: budget.Spent{USD: 2}, call: call,
			want: budget.Amount{USD: 10, Input: 2000, Output: 8000}},
		{name: "exactly what is left, of prices that do not divide it", limits: budget.Limits{USDPerRun: 0.0173},
			call: budget.Call{Input: 1000, Output: 2000, Price: &llm.Price{Input: 1.1, Output: 8.1}}, want: budget.Amount{USD: 0.0173, Input: 1000, Output: 2000}},
		{name: "a hair less than a token's price is no token", limits: budget.Limits{USDPerRun: 0.0172627},
			call: budget.Call{Input: 1007, Output: 1100, Price: &llm.Price{Input: 1.1, Output: 15}}, want: budget.Amount{USD: 0.0172477, Input: 1007, Output: 1076}},
		{name: "the output cap gives way first", limits: budget.Limits{USDPerRun: 7}, call: call,
			want: budget.Amount{USD: 7, Input: 2000, Output: 5000}},
		{name: "as far as the floor", limits: budget.Limits{USDPerRun: 3.024}, call: call,
			want: budget.Amount{USD: 3.024, Input: 2000, Output: 1024}},
		{name: "and no farther", limits: budget.Limits{USDPerRun: 3.023}, call: call,
			refuse: budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 3.023}},
		{name: "a cap below the floor is the floor", limits: budget.Limits{USDPerRun: 2.1}, call: budget.Call{Input: 2000, Output: 100, Price: thousands},
			want: budget.Amount{USD: 2.1, Input: 2000, Output: 100}},
		{name: "max_total_cost", limits: budget.Limits{MaxTotalCost: 1}, call: call,
			refuse: budget.Refusal{Setting: "max_total_cost", Need: 3.024, Left: 1}},
		{name: "what others hold is not left", limits: budget.Limits{USDPerRun: 10}, held: budget.Amount{USD: 8}, call: call,
			refuse: budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 2, Wait: true}},
		{name: "there is room beside what others hold", limits: budget.Limits{USDPerRun: 20}, held: budget.Amount{USD: 8}, call: call,
			want: budget.Amount{USD: 10, Input: 2000, Output: 8000}},
		{name: "an answer that is free after a question that is too dear", limits: budget.Limits{USDPerRun: 1},
			call:   budget.Call{Input: 2000, Output: 8000, Price: &llm.Price{Input: 1000}},
			refuse: budget.Refusal{Setting: "usd_per_run", Need: 2, Left: 1}},
		{name: "waiting does not help", limits: budget.Limits{USDPerRun: 10}, spent: budget.Spent{USD: 9}, held: budget.Amount{USD: 1}, call: call,
			refuse: budget.Refusal{Setting: "usd_per_run", Need: 3.024, Left: 0}},
		{name: "money that is used up", limits: budget.Limits{USDPerRun: 2}, spent: budget.Spent{USD: 2}, call: call,
			refuse: budget.Refusal{Setting: "usd_per_run"}},
		{name: "no price, no bound", limits: budget.Limits{USDPerRun: 0.01}, call: budget.Call{Input: 2000, Output: 8000},
			want: budget.Amount{Input: 2000, Output: 8000}},
		{name: "a local model", limits: budget.Limits{USDPerRun: 0.01}, call: budget.Call{Input: 2000, Output: 8000, Price: &llm.Price{}},
			want: budget.Amount{Input: 2000, Output: 8000}},
		{name: "input tokens", limits: budget.Limits{MaxInputTokens: 5000}, spent: budget.Spent{Input: 3000}, call: call,
			want: budget.Amount{USD: 10, Input: 2000, Output: 8000}},
		{name: "too many input tokens", limits: budget.Limits{MaxInputTokens: 5000}, spent: budget.Spent{Input: 3001}, call: call,
			refuse: budget.Refusal{Setting: "max_input_tokens", Need: 2000, Left: 1999}},
		{name: "output tokens", limits: budget.Limits{MaxOutputTokens: 5000}, spent: budget.Spent{Output: 3000}, call: call,
			want: budget.Amount{USD: 4, Input: 2000, Output: 2000}},
		{name: "too few output tokens", limits: budget.Limits{MaxOutputTokens: 5000}, spent: budget.Spent{Output: 4500}, call: call,
			refuse: budget.Refusal{Setting: "max_output_tokens", Need: 1024, Left: 500}},
		{name: "few output tokens from the start", limits: budget.Limits{MaxOutputTokens: 500}, call: call,
			want: budget.Amount{USD: 2.5, Input: 2000, Output: 500}},
		{name: "context of one request", limits: budget.Limits{MaxRequestTokens: 500}, call: budget.Call{Input: 2000, Likely: 501, Output: 8000},
			refuse: budget.Refusal{Setting: "max_context_tokens_per_request", Need: 501, Left: 500}},
		{name: "the expected context fits", limits: budget.Limits{MaxRequestTokens: 500}, call: budget.Call{Input: 2000, Likely: 500, Output: 8000},
			want: budget.Amount{Input: 2000, Output: 8000}},
		{name: "time without progress", limits: budget.Limits{MaxIdleSeconds: 9}, spent: budget.Spent{Idle: 9 * time.Second}, call: call,
			refuse: budget.Refusal{Setting: "max_no_progress_seconds"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, refusal := tt.limits.Admit(tt.spent, tt.held, tt.call)
			if diff := cmp.Diff(tt.want, got, cmpFloats); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.refuse, refusal, cmpFloats); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var cmpFloats = cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })

// Whatever a provider bills for a call within its reservation, the reservation
// pays for.
//
// rows: HAR-47
func TestTheWorstCaseKnowsEveryPrice(t *testing.T) {
	price := llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	tiered := price
	tiered.Long = &llm.LongPrice{Over: 1000, Input: 6, Output: 22.5, CacheRead: 0.6, CacheWrite: 7.5}
	for _, tt := range []struct {
		name  string
		call  budget.Call
		usage llm.Usage
	}{
		{"all written to the cache", budget.Call{Input: 900, Output: 50, Price: &price}, llm.Usage{Input: 900, Output: 50, CacheWrite: 900}},
		{"kept for an hour", budget.Call{Input: 900, Output: 50, Price: &price, KeptLong: true}, llm.Usage{Input: 900, Output: 50, CacheWrite: 900, CacheWriteLong: 900}},
		{"long input", budget.Call{Input: 1001, Output: 50, Price: &tiered}, llm.Usage{Input: 1001, Output: 50, CacheWrite: 1001}},
		{"a bound in the tier, the request below it", budget.Call{Input: 1001, Output: 50, Price: &tiered}, llm.Usage{Input: 1000, Output: 50, CacheWrite: 1000}},
	} {
		a, refusal := budget.Limits{}.Admit(budget.Spent{}, budget.Amount{}, tt.call)
		if billed := tt.call.Price.Of(tt.usage); refusal.Setting != "" || a.USD < billed {
			t.Errorf("%s: set aside %v, billed %v", tt.name, a.USD, billed)
		}
	}
	a, _ := budget.Limits{}.Admit(budget.Spent{}, budget.Amount{}, budget.Call{Input: 900, Output: 50, Price: &price})
	if want := price.Of(llm.Usage{Input: 900, Output: 50, CacheWrite: 900}); a.USD != want {
		t.Errorf("set aside %v where at most %v can be billed", a.USD, want)
	}
}

func FuzzAdmitStaysWithinTheCap(f *testing.F) {
	f.Add(5.0, 1.0, 0.5, int64(1000), int64(8000), 3.0, 15.0, int64(500))
	f.Add(0.01, 0.0, 0.0, int64(1), int64(1), 75.0, 600.0, int64(0))
	f.Fuzz(func(t *testing.T, limit, spent, held float64, input, output int64, in, out float64, over int64) {
		for _, v := range []float64{limit, spent, held, in, out} {
			if !(v >= 0 && v < 1e6) {
				t.Skip()
			}
		}
		if limit == 0 || input < 0 || input > 1e8 || output < 1 || output > 1e7 || over < 0 {
			t.Skip()
		}
		p := &llm.Price{Input: in, Output: out, Long: &llm.LongPrice{Over: over, Input: 2 * in, Output: 1.5 * out}}
		a, refusal := budget.Limits{USDPerRun: limit}.Admit(
			budget.Spent{USD: spent}, budget.Amount{USD: held}, budget.Call{Input: input, Output: output, Price: p})
		switch {
		case refusal.Setting != "":
			if a != (budget.Amount{}) {
				t.Errorf("refused and set aside: %+v", a)
			}
		case spent+held+a.USD > limit*(1+1e-9)+1e-9:
			t.Errorf("%v + %v + %v exceed %v", spent, held, a.USD, limit)
		case a.Output > output || a.Output < min(output, budget.MinOutput):
			t.Errorf("an output cap of %d where %d was asked for", a.Output, output)
		case p.Of(llm.Usage{Input: a.Input, Output: a.Output}) > a.USD*(1+1e-9)+1e-9:
			t.Errorf("set aside %v for what costs %v", a.USD, p.Of(llm.Usage{Input: a.Input, Output: a.Output}))
		}
	})
}

func TestARefusalSaysWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		refusal budget.Refusal
		want    string
	}{
		{budget.Refusal{Setting: "usd_per_run"}, ""},
		{budget.Refusal{Setting: "usd_per_run", Need: 0.25, Left: 0.1}, "USD 0.2500, and USD 0.1000 are left"},
		{budget.Refusal{Setting: "max_total_cost", Need: 0.25}, "USD 0.2500, and USD 0.0000 are left"},
		{budget.Refusal{Setting: "usd_per_run", Because: "a call went beyond it"}, "a call went beyond it"},
		{budget.Refusal{Setting: "max_input_tokens", Need: 900, Left: -3}, "900 tokens, and 0 are left"},
	} {
		if got := tt.refusal.Detail(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: %q", tt.refusal, got)
		}
	}
}

func TestACallWithoutReportedUsageIsNeverFree(t *testing.T) {
	reserved := llm.Usage{Input: 500, Output: 100}
	for _, tt := range []struct {
		name     string
		received llm.Usage
		bytes    int
		want     llm.Usage
	}{
		{"nothing came", llm.Usage{}, 0, llm.Usage{Input: 500, Output: 100, Estimated: true}},
		{"text came", llm.Usage{}, 40, llm.Usage{Input: 500, Output: 40, Estimated: true}},
		{"more text came than was asked for", llm.Usage{}, 400, llm.Usage{Input: 500, Output: 100, Estimated: true}},
		{"the input was reported", llm.Usage{Input: 321, CacheRead: 300}, 40, llm.Usage{Input: 321, CacheRead: 300, Output: 40, Estimated: true}},
		{"both were", llm.Usage{Input: 321, Output: 7}, 40, llm.Usage{Input: 321, Output: 7, Estimated: true}},
	} {
		if diff := cmp.Diff(tt.want, budget.Unreported(reserved, tt.received, tt.bytes)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if u := budget.Unreported(llm.Usage{}, llm.Usage{}, 0); u.Input == 0 || u.Output == 0 {
		t.Errorf("free: %+v", u)
	}
}
