package pawl_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// answersOnce is a model of that price, whose one answer uses that much.
func answersOnce(p llm.Price, u llm.Usage) pawl.Target {
	return pawl.Target{Name: "test/model", Client: scripted.New("test", scripted.Turn{Text: "done", Usage: &u}), Price: &p}
}

func TestCachedTokensCostInputPriceByDefault(t *testing.T) {
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

// The default applies if no amount is set for a run.
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
		a := pawl.Agent{Model: answersOnce(llm.Price{Output: 6e6}, llm.Usage{Input: 1, Output: 1}), ModelSettings: pawl.ModelSettings{MaxTokens: 1}, Limits: tt.limits}
		if s, err := a.Run(t.Context(), "go"); err != nil || s.Outcome == nil || s.Outcome.Reason != tt.want {
			t.Errorf("%s: %+v (%v)", name, s.Outcome, err)
		}
	}
}

// A run without an explicit cap records in its first event what the default cannot
// stop.
func TestARunBeginsWithAWarningOfModelsWhosePriceIsNotKnown(t *testing.T) {
	unknown := func(name string) pawl.Target {
		return pawl.Target{Name: name, Client: scripted.New("test", scripted.Turn{Text: "done"})}
	}
	free := unknown("test/free")
	free.Price = &llm.Price{}
	const default5, none = "so the default cost limit of USD 5.00 cannot stop its calls", "so the run's cost is not counted in full"
	const removed = "usd_per_run: removed, as requested; nothing of this kind stops the run"
	for name, tt := range map[string]struct {
		agent pawl.Agent
		want  []string
	}{
		"the model":             {pawl.Agent{Model: unknown("test/a")}, []string{"no price is known for test/a, " + default5}},
		"a fallback":            {pawl.Agent{Model: free, Fallbacks: []pawl.Target{unknown("test/b")}}, []string{"no price is known for test/b, " + default5}},
		"an offered agent's":    {pawl.Agent{Model: free, Agents: []pawl.AgentTool{{Name: "ask", Description: "Ask.", Agent: pawl.Agent{Model: unknown("test/c")}}}}, []string{"no price is known for test/c, " + default5}},
		"no cap":                {pawl.Agent{Model: unknown("test/a"), Limits: pawl.Limits{USDPerRun: -1}}, []string{removed, "no price is known for test/a, " + none}},
		"a price that is known": {pawl.Agent{Model: free}, nil},
	} {
		r, err := tt.agent.Start(t.Context(), "go", pawl.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for e, err := range r.Events() {
			if started, ok := e.Data.(event.RunStarted); ok || err != nil {
				if !slices.Equal(started.Warnings, tt.want) || err != nil {
					t.Errorf("%s: %q, want %q (%v)", name, started.Warnings, tt.want, err)
				}
				break
			}
		}
		if _, err := r.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// A child's journal is read on its own, so it says of its own models what its
// parent's says of all.
func TestAChildBeginsWithTheWarningsOfItsOwnModels(t *testing.T) {
	store := memory.New(nil)
	child := researcher(scripted.Turn{Text: "330 m"})
	child.Model.Price = nil
	run, err := writer(child, research, scripted.Turn{Text: "It is 330 m high."}).Start(t.Context(), "Write.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	records, err := store.Records(t.Context(), rows[0].ID, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	first, err := event.Decode(records[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"no price is known for test/small, so the run's cost is not counted in full"}
	if got := first.Data.(event.RunStarted).Warnings; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A cap could not be kept where what an offered agent calls has no price.
func TestACapIsRefusedToARunThatOffersAnAgentWithoutAPrice(t *testing.T) {
	target := func(name string, p *llm.Price) pawl.Target {
		return pawl.Target{Name: name, Client: scripted.New("test", scripted.Turn{Text: "done", Delay: time.Hour}), Price: p}
	}
	for _, tt := range []struct {
		price *llm.Price
		want  []string
	}{
		{nil, []string{"test/below"}},
		{&llm.Price{}, nil},
	} {
		below := pawl.Agent{Model: target("test/below", tt.price), Fallbacks: []pawl.Target{target("test/other", &llm.Price{})}}
		a := pawl.Agent{Model: target("test/above", &llm.Price{}), Agents: []pawl.AgentTool{{Name: "ask", Description: "Ask.", Agent: below}}}
		r, err := a.Start(t.Context(), "go", pawl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = r.Raise(t.Context(), "max_total_cost", 10)
		unpriced, refused := errors.AsType[*budget.UnpricedError](err)
		if refused != (tt.want != nil) || refused && !slices.Equal(unpriced.Models, tt.want) {
			t.Errorf("below a price of %v: %v", tt.price, err)
		}
		if err := r.Cancel(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if _, err := r.Wait(); err != nil {
			t.Error(err)
		}
	}
}
