package flow_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// nested returns a plan with both kinds of loops inside plans and loops, with retries,
// judges, conditions and limits. Its result does not depend on the order of parallel
// steps.
func nested() plan.Plan {
	retried := step("b", "a")
	retried.Retries = 2
	timed := step("c", "a")
	timed.Timeout = 24 * time.Hour
	inner := plan.Step{ID: "inner", DependsOn: []string{"x"}, Retries: 1, Loop: &plan.Loop{
		Max: 3, Delay: time.Minute, StopWhen: []plan.Stop{{Expression: "lucky"}, {Judge: "judge"}}, OnLimit: plan.LimitIsOK, JudgeFailuresMax: 3,
		OnError: plan.IterationContinues, Body: plan.Plan{Concurrency: 2, Steps: []plan.Step{step("p"), step("q"), conditional("r", "lucky", "p"), step("s", "q", "r")}},
	}}
	items := static(5)
	items.OnError, items.Concurrency, items.MinSuccess = plan.Collect, 3, 1
	return plan.Plan{Concurrency: 4, OnFailure: plan.SkipDependents, Steps: []plan.Step{
		step("a"), retried, timed,
		{ID: "each", DependsOn: []string{"a"}, Loop: &plan.Loop{Items: items, Output: plan.Cumulative, Body: plan.Plan{OnFailure: plan.SkipDependents, Steps: []plan.Step{step("x"), inner, step("y", "inner")}}}},
		{ID: "sub", DependsOn: []string{"b", "c"}, Plan: &plan.Plan{Width: 1, Steps: []plan.Step{step("m"), step("n"), step("o", "m", "n")}}},
		step("end", "each", "sub"),
	}}
}

// chance reports, with the given probability, whether an event happens to a name. The
// result does not depend on the order of calls.
func chance(seed uint64, name string, percent uint64) bool {
	h := fnv.New64a()
	fmt.Fprint(h, seed, name)
	return rand.New(rand.NewPCG(h.Sum64(), seed)).Uint64N(100) < percent
}

// playRandomly plays the plan with children that end in random order, and with crashes
// between events.
func playRandomly(t *testing.T, seed uint64, crashes int) (ends map[string]event.StepFinished, ids []string) {
	order := rand.New(rand.NewPCG(seed, uint64(crashes)))
	p := newPlayer(t, nested())
	p.eval = func(a machine.Evaluate) event.ConditionEvaluated {
		if chance(seed, a.ID, 5) {
			return event.ConditionEvaluated{Error: "no overload"}
		}
		return event.ConditionEvaluated{Value: json.RawMessage(fmt.Sprint(chance(seed, a.ID, 50)))}
	}
	p.says = func(a machine.StartChild) (event.Outcome, event.Taint) {
		switch {
		case a.Name == "judge" && chance(seed, a.ID, 60):
			return gave("I looked.", fmt.Sprintf(`{"done":%t}`, chance(seed, a.ID+"done", 30))), event.Taint{}
		case a.Name != "judge" && chance(seed, a.ID, 15):
			return fails("bad luck"), event.Taint{}
		}
		return ok("said by " + a.ID), event.Taint{}
	}
	for p.m.State().Outcome == nil {
		p.decide()
		if crashes > 0 && order.IntN(5) == 0 && p.m.State().Outcome == nil {
			crashes--
			p.m = p.again()
			p.apply(event.RunResumed{Recovered: true})
			p.decide()
		}
		runs := slices.Sorted(maps.Keys(p.runs))
		if at, waits := p.waits(); len(runs) == 0 && waits {
			p.now = at
		} else if len(runs) > 0 {
			run := runs[order.IntN(len(runs))]
			o, taint := p.says(p.runs[run])
			p.finish(run, o, taint)
		} else if p.m.State().Outcome == nil {
			t.Fatalf("seed %d: nothing is left to do\n%s", seed, p.story())
		}
	}
	if p.most > 4 {
		t.Errorf("seed %d: %d at once", seed, p.most)
	}
	ends = map[string]event.StepFinished{}
	open := map[string]bool{}
	for _, e := range p.events {
		switch d := e.Data.(type) {
		case event.ChildStarted:
			if d.BeginsStep() && open[d.Step] {
				t.Errorf("seed %d: %s begins twice", seed, d.Step)
			}
			open[d.Step] = open[d.Step] || d.BeginsStep()
		case event.StepStarted:
			if open[d.Step] {
				t.Errorf("seed %d: %s begins twice", seed, d.Step)
			}
			open[d.Step] = true
		case event.StepFinished:
			delete(open, d.Step)
			ends[d.Step] = d
		case event.StepSkipped:
			ends[d.Step] = event.StepFinished{Status: event.StepStatusSkipped}
		}
	}
	if len(open) > 0 {
		t.Errorf("seed %d: without an end: %v", seed, open)
	}
	ids = p.ids()
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("seed %d: a child was begun twice: %v", seed, ids)
	}
	return ends, ids
}

// Whatever the order in which children end, and wherever the process crashes, the same
// steps end with the same results under the same names.
func TestNeitherTheOrderNorCrashesChangeWhatBecomesOfAPlan(t *testing.T) {
	for seed := range uint64(60) {
		ends, ids := playRandomly(t, seed, 0)
		for _, crashes := range []int{1, 50} {
			again, sameIDs := playRandomly(t, seed, crashes)
			if !reflect.DeepEqual(ends, again) || !slices.Equal(ids, sameIDs) {
				for id, end := range ends {
					if !reflect.DeepEqual(end, again[id]) {
						t.Errorf("seed %d: %s ends as %+v, and with %d crashes as %+v", seed, id, end, crashes, again[id])
					}
				}
				t.Fatalf("seed %d, %d crashes: %v\n%v", seed, crashes, ids, sameIDs)
			}
		}
	}
}
