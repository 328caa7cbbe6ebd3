package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// sideBySide runs a step for each of so many items, all of them at once.
func sideBySide(t *testing.T, items int, step plan.Step, child func(*memory.Store) perform.Child) time.Duration {
	t.Helper()
	before := processor.Time(t)
	l := &plan.Loop{Single: true, Items: &plan.Items{}, Body: plan.Plan{Steps: []plan.Step{step}}}
	for i := range items {
		l.Items.Static = append(l.Items.Static, json.RawMessage(fmt.Sprint(i)))
	}
	started, err := flow.Start(flow.Config{Plan: plan.Plan{Steps: []plan.Step{{ID: "each", Loop: l}}}}, llm.UserText("Build it."))
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	defer func() { _ = e.Close() }()
	run, err := e.Start(t.Context(), started, perform.Env{Children: map[string]perform.Child{"worker": child(store)}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := run.Wait(t.Context())
	if err != nil || state.Outcome == nil || !state.Outcome.OK {
		t.Fatalf("%+v, %v", state.Outcome, err)
	}
	return processor.Time(t) - before
}

// Children side by side take no more each, however many they are.
func TestManyChildrenSideBySideTakeNoMoreEach(t *testing.T) {
	for name, c := range map[string]struct {
		step  plan.Step
		child func(*memory.Store) perform.Child
	}{
		"functions": {plan.Step{Func: &plan.Func{Name: "worker"}}, func(*memory.Store) perform.Child {
			return perform.Child{Func: func(context.Context, json.RawMessage) (perform.Output, error) {
				return perform.Output{Text: "done"}, nil
			}}
		}},
		"agents": {doneBy(""), func(s *memory.Store) perform.Child {
			r := newRig(t).turns(scripted.Turn{Text: "done"}).priced(1, 1)
			started, set := r.started(), r.env.Tools
			return perform.Child{Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
				m := scripted.New("test", scripted.Turn{Text: "done"})
				return started, perform.Env{Tools: set, Model: func(string) (llm.Model, string, error) { return m, "model", nil }}, nil
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			few, many := sideBySide(t, 200, c.step, c.child), sideBySide(t, 2000, c.step, c.child)
			t.Logf("200 take %s, 2000 take %s", few, many)
			if many > 30*few {
				t.Errorf("200 children take %s, 2000 take %s", few, many)
			}
		})
	}
}
