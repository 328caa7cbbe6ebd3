package view_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/view"
)

// nodesByID plays events to a view and returns the graph of a plan.
func nodesByID(t *testing.T, p plan.Plan, passes []string, played ...event.Data) map[string]view.Node {
	t.Helper()
	cfg, err := json.Marshal(flow.Config{Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	var v view.View
	var evaluated []event.ConditionEvaluated
	for i, d := range append([]event.Data{event.RunStarted{Machine: flow.Version, Config: cfg}}, played...) {
		v.Add(&event.Event{Seq: int64(i + 1), Run: "r", Data: d})
		if d, is := d.(event.ConditionEvaluated); is {
			evaluated = append(evaluated, d)
		}
	}
	nodes := map[string]view.Node{}
	for _, n := range v.Graph(&p, evaluated, passes) {
		if n.Parent != "" && nodes[n.Parent].ID == "" {
			t.Errorf("%s is before the node that contains it", n.ID)
		}
		nodes[n.ID] = n
	}
	return nodes
}

func step(id string, status event.StepStatus) []event.Data {
	return []event.Data{event.StepStarted{Step: id, Attempt: 1}, event.StepFinished{Step: id, Status: status, Attempt: 1}}
}

func TestGraphShowsOnePassOfEachLoop(t *testing.T) {
	agent := &plan.Agent{Name: "w"}
	p := plan.Plan{Steps: []plan.Step{
		{ID: "build", Agent: agent},
		{ID: "audit", Agent: agent, DependsOn: []string{"build"}, Condition: "false"},
		{ID: "each", DependsOn: []string{"build"}, Loop: &plan.Loop{Single: true, Items: &plan.Items{Expression: "x"}, Body: plan.Plan{Steps: []plan.Step{{Agent: agent}}}}},
		{ID: "polish", Loop: &plan.Loop{Max: 5, Body: plan.Plan{Steps: []plan.Step{{ID: "draft", Agent: agent}, {ID: "check", Agent: agent, DependsOn: []string{"draft"}}}}}},
	}}
	before := nodesByID(t, p, nil)
	if n := before["polish.0.check"]; n.State != "" || n.Parent != "polish" || len(n.After) != 1 || n.After[0] != "polish.0.draft" || before["polish"].Loop.Of != 5 {
		t.Errorf("before it began: %+v", n)
	}
	var played []event.Data
	played = append(played, step("build", event.StepStatusCompleted)...)
	played = append(played, event.ConditionEvaluated{ID: "audit/condition", Step: "audit", Expression: "false", Value: json.RawMessage("false")},
		event.StepSkipped{Step: "audit", Reason: "its condition is false"},
		event.ConditionEvaluated{ID: "each/items", Step: "each", Expression: "x", Value: json.RawMessage("[1,2,3,4]")}, event.StepStarted{Step: "each", Attempt: 1})
	played = append(played, step("each[0]", event.StepStatusCompleted)...)
	played = append(played, event.Iteration{Step: "each", Index: 0, Number: 1})
	played = append(played, step("each[2]", event.StepStatusFailed)...)
	played = append(played, event.Iteration{Step: "each", Index: 2, Number: 3}, event.StepStarted{Step: "each[1]", Attempt: 1}, event.StepStarted{Step: "polish", Attempt: 1})
	played = append(played, step("polish.0.draft", event.StepStatusCompleted)...)
	played = append(played, event.StepSkipped{Step: "polish.0.check", Reason: "no"}, event.Iteration{Step: "polish", Index: 0, Number: 1, MaxIterations: 5})
	played = append(played, step("polish.1.draft", event.StepStatusFailed)...)

	now := nodesByID(t, p, nil, played...)
	if n := now["audit"]; n.State != view.Skip || string(n.Condition.Value) != "false" {
		t.Errorf("%+v, %+v", n, n.Condition)
	}
	if r := now["each"].Loop; r.Of != 4 || r.Passes != 3 || r.Done != 1 || r.Failed != 1 || r.Running != 1 || r.At != 2 || !r.Items {
		t.Errorf("each: %+v", r)
	}
	if n := now["each[2]"]; n.State != view.Failed {
		t.Errorf("the item that failed: %+v", n)
	}
	if r := now["polish"].Loop; r.Of != 5 || r.Passes != 2 || r.Done != 1 || r.At != 1 || now["polish.1.draft"].State != view.Failed {
		t.Errorf("polish: %+v, %+v", r, now["polish.1.draft"])
	}
	earlier := nodesByID(t, p, []string{"polish.0", "each[1]", "nothing", "polish.x"}, played...)
	if earlier["polish.0.check"].State != view.Skip || earlier["each[1]"].State != view.Running || earlier["each"].Loop.Done != 1 {
		t.Errorf("%+v", earlier)
	}
}

func TestGraphOfARefinementLoopHasItsIterations(t *testing.T) {
	p := plan.Plan{Refine: true, Steps: []plan.Step{{ID: "loop", Loop: &plan.Loop{Single: true, Max: 3, Body: plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "w"}}}}}}}}
	now := nodesByID(t, p, nil, event.ChildStarted{Child: "c0", ID: "loop.0", Step: "loop.0"}, event.Iteration{Step: "loop", Index: 0, Number: 1, MaxIterations: 3, Child: "c0"},
		event.ChildStarted{Child: "c1", ID: "loop.1", Step: "loop.1"})
	if r := now["loop"].Loop; r.Of != 3 || r.Passes != 2 || r.Done != 1 || r.Running != 1 || r.At != 1 {
		t.Errorf("%+v", r)
	}
	if n := now["loop.1"]; n.Run != "c1" || n.Parent != "loop" {
		t.Errorf("%+v", n)
	}
}
