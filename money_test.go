package pawl_test

import (
	"math"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// answersOnce is a model of that price, whose one answer uses that much.
func answersOnce(p llm.Price, u llm.Usage) pawl.Target {
	return pawl.Target{Name: "test/model", Client: scripted.New("test", scripted.Turn{Text: "done", Usage: &u}), Price: &p}
}

func TestCachedTokensCostWhatFreshOnesDoWhereThePriceDoesNotSay(t *testing.T) {
	used := llm.Usage{Input: 1000, Output: 10, CacheRead: 800, CacheWrite: 100}
	for name, tt := range map[string]struct {
		price llm.Price
		want  float64
	}{
		"not said":               {llm.Price{Input: 1000, Output: 1000}, 1.01},
		"said":                   {llm.Price{Input: 1000, Output: 1000, CacheRead: 100, CacheWrite: 1250}, 0.1 + 0.08 + 0.125 + 0.01},
		"said of reading alone":  {llm.Price{Input: 1000, Output: 1000, CacheRead: 100}, 0.1 + 0.08 + 0.1 + 0.01},
		"said of writing alone":  {llm.Price{Input: 1000, Output: 1000, CacheWrite: 1250}, 0.1 + 0.8 + 0.125 + 0.01},
		"nothing":                {llm.Price{}, 0},
		"not said of a long one": {llm.Price{Long: &llm.LongPrice{Over: 500, Input: 2000, Output: 1000}}, 2.01},
	} {
		a := pawl.Agent{Model: answersOnce(tt.price, used), Limits: pawl.Limits{USDPerRun: 1e6}}
		s, err := a.Run(t.Context(), "go")
		if err != nil || s.Cost == nil || math.Abs(s.Cost.USD-tt.want) > 1e-9 {
			t.Errorf("%s: cost %+v, want %v (%v)", name, s.Cost, tt.want, err)
		}
	}
}

// The default is for whoever has not said what a run may cost.
func TestTheDefaultCapInMoneyGivesWayToTheOneThatIsSet(t *testing.T) {
	for name, tt := range map[string]struct {
		limits pawl.Limits
		want   event.Reason
	}{
		"none is set":             {pawl.Limits{}, "budget:usd_per_run"},
		"max_total_cost":          {pawl.Limits{MaxTotalCost: 100}, event.ReasonFinalAnswer},
		"no max_total_cost":       {pawl.Limits{MaxTotalCost: -1}, "budget:usd_per_run"},
		"both, the smaller holds": {pawl.Limits{MaxTotalCost: 100, USDPerRun: 1}, "budget:usd_per_run"},
	} {
		a := pawl.Agent{Model: answersOnce(llm.Price{Output: 6e6}, llm.Usage{Input: 1, Output: 1}), MaxTokens: 1, Limits: tt.limits}
		if s, err := a.Run(t.Context(), "go"); err != nil || s.Outcome == nil || s.Outcome.Reason != tt.want {
			t.Errorf("%s: %+v (%v)", name, s.Outcome, err)
		}
	}
}
