package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// tangled is a plan with branches beside each other, items, loops within loops, a judge,
// a condition, a delay and a step that is tried twice.
func tangled() plan.Plan {
	fn := func(id string, after ...string) plan.Step {
		return plan.Step{ID: id, DependsOn: after, Func: &plan.Func{Name: "work"}}
	}
	items := []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`"b"`), json.RawMessage(`"c"`)}
	second := []plan.Stop{{Judge: "judge"}, {Expression: "iteration == 1"}}
	inner := plan.Step{ID: "inner", DependsOn: []string{"one"}, Loop: &plan.Loop{
		Single: true, Max: 3, Delay: time.Hour, StopWhen: second, Body: plan.Plan{Steps: []plan.Step{doneBy("")}},
	}}
	conditional := fn("conditional", "first")
	conditional.Condition = "iteration == 1 || true"
	return plan.Plan{Name: "tangled", Steps: []plan.Step{
		fn("first"), doneBy("beside"), conditional,
		{ID: "each", DependsOn: []string{"first"}, Loop: &plan.Loop{
			Items: &plan.Items{Static: items, OnError: plan.Collect}, Body: plan.Plan{Steps: []plan.Step{fn("make"), fn("test", "make")}},
		}},
		{ID: "outer", DependsOn: []string{"first"}, Loop: &plan.Loop{
			Max: 3, StopWhen: second, Body: plan.Plan{Steps: []plan.Step{fn("one"), inner}},
		}},
		{ID: "sub", DependsOn: []string{"each", "beside"}, Plan: &plan.Plan{Steps: []plan.Step{fn("x"), fn("y", "x")}}},
		fn("last", "sub", "outer", "conditional"),
	}}
}

// begun counts what is begun of a plan, and has the one of a number fail.
type begun struct {
	mu                sync.Mutex
	all, judges, fail int
}

func (b *begun) next() (fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all++
	return b.all == b.fail
}

func (b *begun) env(t *testing.T, store journal.Store) perform.Env {
	worker, judge := works(t, store, "done"), works(t, store, "no verdict")
	ok, asked := worker.Begin, judge.Begin
	worker.Begin = func(args json.RawMessage) (event.RunStarted, perform.Env, error) {
		if b.next() {
			r := newRig(t, store).turns(scripted.Turn{Error: &scripted.Failure{Class: llm.ClassAuth}})
			return r.started(), r.env, nil
		}
		return ok(args)
	}
	judge.Begin = func(args json.RawMessage) (event.RunStarted, perform.Env, error) {
		b.mu.Lock()
		b.judges++
		b.mu.Unlock()
		return asked(args)
	}
	return perform.Env{
		Evaluate: func(_ context.Context, expression string, v json.RawMessage) (json.RawMessage, error) {
			var at struct{ Iteration *int }
			if err := json.Unmarshal(v, &at); err != nil || at.Iteration == nil {
				return json.RawMessage("true"), err
			}
			return json.Marshal(*at.Iteration == 1)
		},
		Children: map[string]perform.Child{"worker": worker, "judge": judge, "work": {Func: func(context.Context, json.RawMessage) (perform.Output, error) {
			if b.next() {
				return perform.Output{}, errors.New("no disk")
			}
			return perform.Output{Text: "done", Result: json.RawMessage(`{"n":1}`)}, nil
		}}},
	}
}

// retried runs a retry of a run.
func retried(t *testing.T, e *engine.Engine, store journal.Store, run string, env perform.Env) *engine.Run {
	t.Helper()
	retry := flow.NewRetry()
	for read, err := range drive.Events(t.Context(), store, run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		retry.Add(read.Event)
	}
	seq, steps, err := retry.Begin("")
	if err != nil || len(steps) != 1 {
		t.Fatalf("it does %v again, %v", steps, err)
	}
	b, err := e.Branch(t.Context(), run, seq)
	if err != nil {
		t.Fatal(err)
	}
	b.Keep = retry.Kept
	id, err := e.Fork(t.Context(), b, event.RunForked{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Resume(t.Context(), id, func(event.RunStarted) (perform.Env, error) { return env, nil })
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// Whichever step of a plan fails, a retry begins that one again, and nothing that
// completed; so does a retry of a retry that failed.
func TestARetryBeginsWhatFailedAgainAndNothingElse(t *testing.T) {
	all, judges := 0, 0
	for fail := 0; fail <= all; fail++ {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint("step ", fail, " fails, also again: ", twice), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := memory.New(nil)
					e := engine.New(store, versions.Make, engine.Options{})
					t.Cleanup(func() { _ = e.Close() })
					started, err := flow.Start(flow.Config{Plan: tangled()}, llm.UserText("Build it."))
					if err != nil {
						t.Fatal(err)
					}
					b := &begun{fail: fail}
					env := b.env(t, store)
					run, err := e.Start(t.Context(), started, env)
					if err != nil {
						t.Fatal(err)
					}
					o, more := outcome(t, run), 0
					if fail == 0 {
						all, judges = b.all, b.judges
					}
					for ; fail > 0 && (more == 0 || twice && more == 1); more++ {
						if o.OK {
							t.Fatal("no step failed")
						}
						if b.fail = 0; twice && more == 0 {
							b.fail = b.all + 1
						}
						run = retried(t, e, store, run.ID, env)
						o = outcome(t, run)
					}
					if !o.OK || o.FinalOutput != "done" || o.Steps.Completed != 7 {
						t.Fatalf("it ends as %+v, error %+v", o, o.Error)
					}
					if b.all != all+more || b.judges != judges {
						t.Errorf("%d steps and %d judges were begun, want %d and %d", b.all, b.judges, all+more, judges)
					}
					if fail == all && o.Cost != nil {
						t.Errorf("only the last step, a function, was begun, and it cost %v", *o.Cost)
					}
					if _, err := journal.Verify(t.Context(), store, run.ID, ""); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
	if all < 15 {
		t.Errorf("the plan begins %d steps", all)
	}
}

// A retry does nothing of what a loop had got over, and nothing that was kept is done by
// a plan that completes.
func TestARetryLeavesWhatALoopGotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		e := engine.New(store, versions.Make, engine.Options{})
		t.Cleanup(func() { _ = e.Close() })
		fn := func(id string, after ...string) plan.Step {
			return plan.Step{ID: id, DependsOn: after, Func: &plan.Func{Name: id}}
		}
		var calls []string
		does := func(id string, fails func(n int) bool) perform.Child {
			return perform.Child{Func: func(context.Context, json.RawMessage) (perform.Output, error) {
				calls = append(calls, id)
				n := 0
				for _, c := range calls {
					if c == id {
						n++
					}
				}
				if fails(n) {
					return perform.Output{}, errors.New("no")
				}
				return perform.Output{Text: fmt.Sprint(id, n)}, nil
			}}
		}
		env := perform.Env{Children: map[string]perform.Child{
			"flaky": does("flaky", func(n int) bool { return n == 1 }),
			"tried": does("tried", func(n int) bool { return n == 1 }),
			"ends":  does("ends", func(n int) bool { return n <= 2 }),
		}}
		tried, ends := fn("tried", "loop"), fn("ends", "tried")
		tried.Retries, ends.Retries = 1, 1
		started, err := flow.Start(flow.Config{Plan: plan.Plan{Name: "p", Steps: []plan.Step{
			{ID: "loop", Loop: &plan.Loop{Max: 3, OnError: plan.IterationContinues, StopWhen: []plan.Stop{{Regex: "flaky"}}, Body: plan.Plan{Steps: []plan.Step{fn("flaky")}}}},
			tried, ends,
		}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := e.Start(t.Context(), started, env)
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, run); o.OK || o.Step != "ends" {
			t.Fatalf("it ends as %+v", o)
		}
		again := retried(t, e, store, run.ID, env)
		if o := outcome(t, again); !o.OK || o.FinalOutput != "ends3" {
			t.Fatalf("the retry ends as %+v", o)
		}
		if want := []string{"flaky", "flaky", "tried", "tried", "ends", "ends", "ends"}; !slices.Equal(calls, want) {
			t.Errorf("the calls are %v, want %v", calls, want)
		}
		retry := flow.NewRetry()
		for read, err := range drive.Events(t.Context(), store, again.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			retry.Add(read.Event)
		}
		if _, _, err := retry.Begin(""); !errors.Is(err, flow.ErrNothingFailed) {
			t.Errorf("of a run that completed: %v", err)
		}
	})
}
