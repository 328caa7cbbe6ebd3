package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// doneBy is a step that the rig's agent does.
func doneBy(id string, after ...string) plan.Step {
	return plan.Step{ID: id, DependsOn: after, Agent: &plan.Agent{Name: "worker", Instructions: "Do " + id + "."}}
}

// works is an agent that says one thing, as a child.
func works(t *testing.T, store journal.Store, text string) perform.Child {
	env := func() *rig { return newRig(t, store).turns(scripted.Turn{Text: text}).priced(1, 1) }
	return perform.Child{
		Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
			r := env()
			return r.started(), r.env, nil
		},
		Resume: func(string, event.RunStarted) (perform.Env, error) { return env().env, nil },
	}
}

// everyKind is a plan with a step of each kind, with loops of both kinds.
func everyKind() plan.Plan {
	item := func(n int) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }
	count := plan.Step{ID: "count", DependsOn: []string{"design"}, Func: &plan.Func{Name: "count"}}
	return plan.Plan{Name: "all", Steps: []plan.Step{
		doneBy("design"), count,
		{ID: "each", DependsOn: []string{"count"}, Loop: &plan.Loop{
			Items: &plan.Items{Static: []json.RawMessage{item(1), item(2)}}, Body: plan.Plan{Steps: []plan.Step{doneBy("deploy"), doneBy("verify", "deploy")}},
		}},
		{ID: "again", DependsOn: []string{"design"}, Loop: &plan.Loop{
			Single: true, Max: 2, Delay: time.Hour, StopWhen: []plan.Stop{{Regex: "never"}, {Expression: "iteration == 1"}}, Body: plan.Plan{Steps: []plan.Step{doneBy("")}},
		}},
		{ID: "sub", DependsOn: []string{"each", "again"}, Plan: &plan.Plan{Steps: []plan.Step{doneBy("last")}}},
	}}
}

// A workflow runs on the driver as agents do, and whatever is cut off between two
// commits goes on where it stood: nothing that was settled is done again, and each
// step has the name that it would have had.
func TestAWorkflowGoesOnAfterEachCrash(t *testing.T) {
	input := llm.UserText("Build it.")
	started, err := flow.Start(flow.Config{Plan: everyKind()}, input)
	if err != nil {
		t.Fatal(err)
	}
	var whole []string
	for dies := 200; dies >= 0; dies-- {
		commits := 0
		t.Run(fmt.Sprint("after ", dies, " commits"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, dead := dying(dies)
				e := engine.New(store, versions.Make, engine.Options{})
				t.Cleanup(func() { _ = e.Close() })
				env := perform.Env{
					Evaluate: func(_ context.Context, _ string, v json.RawMessage) (json.RawMessage, error) {
						return json.Marshal(strings.Contains(string(v), `"iteration":1`))
					},
					Children: map[string]perform.Child{
						"worker": works(t, store, "done"),
						"count": {Func: func(_ context.Context, input json.RawMessage) (perform.Output, error) {
							return perform.Output{Text: "one", Result: json.RawMessage(`{"n":1}`)}, nil
						}},
					},
				}
				run, err := e.Start(t.Context(), started, env)
				if err != nil {
					t.Fatal(err)
				}
				state, err := run.Wait(t.Context())
				if err != nil {
					mustBe(t, err, dead)
					store.onAppend = nil
					time.Sleep(time.Minute) // leases end
					if run, err = e.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return env, nil }); err != nil {
						t.Fatal(err)
					}
					state, err = run.Wait(t.Context())
				}
				if err != nil || state.Outcome == nil || !state.Outcome.OK || state.Outcome.FinalOutput != "done" || state.Outcome.Steps.Completed != 5 || state.Outcome.Cost.USD == 0 {
					t.Fatalf("it ends as %+v, %v", state.Outcome, err)
				}
				commits = store.count()
				story := whatHappened(t, store, run.ID)
				if whole == nil {
					whole = story
				} else if !slices.Equal(whole, story) {
					t.Errorf("it went\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(whole, "\n"))
				}
			})
		})
		dies = min(dies, commits)
	}
	if len(whole) != 30 {
		t.Errorf("it took %d events:\n%s", len(whole), strings.Join(whole, "\n"))
	}
}

// whatHappened are the events about steps, sorted, because steps beside each other
// end in any order; and each run of the tree is whole.
func whatHappened(t *testing.T, store journal.Store, run string) (story []string) {
	t.Helper()
	rows, err := store.Runs(t.Context(), journal.Filter{Root: run})
	if err != nil || len(rows) != 9 {
		t.Errorf("the tree has %d runs, %v", len(rows), err)
	}
	for _, row := range rows {
		if _, err := journal.Verify(t.Context(), store, row.ID, ""); err != nil || row.State != journal.Ended {
			t.Errorf("%+v, %v", row, err)
		}
	}
	records, err := store.Records(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ChildStarted:
			story = append(story, "child "+d.ID)
		case event.StepFinished:
			story = append(story, fmt.Sprint(d.Step, " ", d.Status, " ", d.Content))
		case event.Iteration:
			story = append(story, fmt.Sprint(d.Step, " ", d.Index, " ", d.Output))
		case event.ConditionEvaluated, event.WaitFinished:
			story = append(story, string(e.Type()))
		}
	}
	slices.Sort(story)
	return story
}

// A function that a cancel stops is not called again, and its step is cancelled.
func TestAFunctionOfAWorkflow(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(ctx context.Context, input string) (perform.Output, error)
		reason event.Reason
		said   string
		steps  event.StepCounts
	}{
		"gives a result": {func(_ context.Context, input string) (perform.Output, error) {
			return perform.Output{Text: input}, nil
		}, event.ReasonFinalAnswer, `{"steps":{},"content":"","input":"Build it."}`, event.StepCounts{Completed: 1}},
		"fails":  {func(context.Context, string) (perform.Output, error) { return perform.Output{}, errors.New("no disk") }, event.ReasonStepFailed, "no disk", event.StepCounts{Failed: 1}},
		"panics": {func(context.Context, string) (perform.Output, error) { panic("oh") }, event.ReasonStepFailed, "oh", event.StepCounts{Failed: 1}},
		"takes too long": {func(ctx context.Context, _ string) (perform.Output, error) {
			<-ctx.Done()
			return perform.Output{}, ctx.Err()
		}, event.ReasonStepFailed, "it was not done after 1m0s", event.StepCounts{Failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.New(memory.New(nil), versions.Make, engine.Options{})
				t.Cleanup(func() { _ = e.Close() })
				var once sync.Once
				env := perform.Env{Children: map[string]perform.Child{"f": {Func: func(ctx context.Context, input json.RawMessage) (perform.Output, error) {
					called := false
					once.Do(func() { called = true })
					if !called {
						t.Error("it is called again")
					}
					return c.do(ctx, string(input))
				}}}}
				started, err := flow.Start(flow.Config{Plan: plan.Plan{Steps: []plan.Step{{ID: "f", Timeout: time.Minute, Func: &plan.Func{Name: "f"}}}}}, llm.UserText("Build it."))
				if err != nil {
					t.Fatal(err)
				}
				run, err := e.Start(t.Context(), started, env)
				if err != nil {
					t.Fatal(err)
				}
				state, err := run.Wait(t.Context())
				if err != nil || state.Outcome == nil || state.Outcome.Reason != c.reason || *state.Outcome.Steps != c.steps {
					t.Fatalf("%+v, %v", state.Outcome, err)
				}
				said := state.Outcome.FinalOutput
				if state.Outcome.Error != nil {
					said = state.Outcome.Error.Message
				}
				if !strings.Contains(said, c.said) {
					t.Errorf("it says %q", said)
				}
			})
		})
	}
}
