package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// A run of another kind gets its configured input, or else the prompt of a step.
func TestAStepCanBeARunOfAnotherKind(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		step("a"),
		{ID: "given", DependsOn: []string{"a"}, Run: &plan.Run{Kind: "workflow", Name: "release", Instructions: "Ship it.", Input: json.RawMessage(`{"version":3}`)}},
		{ID: "told", DependsOn: []string{"a"}, Run: &plan.Run{Kind: "agent", Name: "writer", Instructions: "Say what changed."}},
	}})
	p.says = named(nil)
	if o := p.play(); !o.OK {
		t.Fatalf("%+v", o)
	}
	given, told := p.begun[1], p.begun[2]
	if given.Kind != "workflow" || given.Name != "release" || string(given.Input) != `{"version":3}` {
		t.Errorf("%+v", given)
	}
	if text := p.told("told"); told.Kind != "agent" || told.Name != "writer" || !strings.Contains(text, "## Instructions\nSay what changed.") || !strings.Contains(text, "said by a") {
		t.Errorf("%+v is told\n%s", told, text)
	}
}

func TestOnlyFilesThatAreNoTextGoAsMedia(t *testing.T) {
	picture := llm.Media{MediaType: "image/png", Data: []byte{1}}
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "a", Agent: &plan.Agent{Name: "x", Files: []plan.File{
		{Path: "a.md", Text: "words"}, {Path: "a.png", Media: &picture}, {Path: "b.png", Media: &picture},
	}}}}})
	p.says = named(nil)
	p.play()
	var task struct {
		Task  string
		Media []llm.Media
	}
	if err := json.Unmarshal(p.begun[0].Input, &task); err != nil || len(task.Media) != 2 || task.Media[1].MediaType != "image/png" || !strings.Contains(task.Task, "## File a.md\nwords") {
		t.Errorf("%s", p.begun[0].Input)
	}
}

// An agent with a result schema must submit a result unless it failed or was stopped.
func TestAStepWithAResultSchemaNeedsAResult(t *testing.T) {
	stopped := event.Outcome{Status: event.StatusStopped, Reason: event.ReasonMaxCycles}
	for name, tt := range map[string]struct {
		ends event.Outcome
		want string
	}{
		"with a result":      {gave("", `{"a":1}`), "completed a"},
		"without":            {ok("done"), "failed a: no_result: " + flow.NoResult},
		"at its cycle limit": {stopped, "failed a: no_result: " + flow.NoResult},
		"that failed":        {fails("no key"), "failed a: model_error: no key"},
		"that was cancelled": {event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled}, "cancelled a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "a", Agent: &plan.Agent{Name: "x", Result: true}}}})
			p.says = named(map[string]event.Outcome{"a": tt.ends})
			p.play()
			p.holds("started a 1\n" + tt.want)
		})
	}
}

// The shorter of the limits of a graph and of its step applies.
func TestTheShorterTimeoutOfAGraphHolds(t *testing.T) {
	for _, tt := range []struct{ step, graph, want time.Duration }{
		{3 * time.Second, 0, 3 * time.Second}, {0, 4 * time.Second, 4 * time.Second},
		{3 * time.Second, 4 * time.Second, 3 * time.Second}, {5 * time.Second, 4 * time.Second, 4 * time.Second},
	} {
		p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "g", Timeout: tt.step, Plan: &plan.Plan{Timeout: tt.graph, Steps: []plan.Step{step("a")}}}}})
		p.says, p.hold = named(nil), func(string) bool { return true }
		began := p.now
		p.play()
		if want := fmt.Sprintf("failed g: timeout: it was not done after %s", tt.want); !strings.Contains(p.story(), want) || p.now.Sub(began) != tt.want {
			t.Errorf("%s and %s: after %s\n%s", tt.step, tt.graph, p.now.Sub(began), p.story())
		}
	}
}

func TestTheShorterTimeoutOfACommandHolds(t *testing.T) {
	for _, tt := range []struct{ step, command, want time.Duration }{
		{0, 0, 0}, {0, time.Second, time.Second}, {time.Minute, 0, time.Minute}, {time.Minute, time.Second, time.Second}, {time.Second, time.Minute, time.Second},
	} {
		p := newPlayer(t, plan.Plan{Steps: []plan.Step{{ID: "c", Timeout: tt.step, Command: &plan.Command{Argv: []string{"make"}, Timeout: tt.command}}}})
		p.exec = func(a machine.RunCommand) event.CommandFinished {
			if a.WallLimit != tt.want {
				t.Errorf("%s for the step and %s for the command: %s", tt.step, tt.command, a.WallLimit)
			}
			return exits(0, "")
		}
		p.play()
	}
}

// A task has sections only if it contains more than the instructions.
func TestInstructionsAloneAreTheWholeTask(t *testing.T) {
	if got := flow.Prompt(flow.Material{Fence: f(), Instructions: "Do it."}); got != "Do it." {
		t.Errorf("%q", got)
	}
	for name, m := range map[string]flow.Material{
		"a task":      {Task: "Build it."},
		"an item":     {Item: json.RawMessage(`1`)},
		"a pass":      {Iteration: 1, Of: 2},
		"a file":      {Files: []plan.File{{Path: "a.md", Text: "words"}}},
		"a message":   {Inbox: []event.InputReceived{{Text: "Go on."}}},
		"what a said": {Sections: []flow.Section{{Title: "Step a", From: "a", Content: "done"}}},
	} {
		m.Fence, m.Instructions = f(), "Do it."
		if got := flow.Prompt(m); !strings.Contains(got, "## Instructions\nDo it.") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTextOfExactlyTheBoundIsNotCut(t *testing.T) {
	for extra, cut := range map[int]bool{0: false, 1: true} {
		told := flow.Prompt(flow.Material{Fence: f(), Sections: []flow.Section{{Title: "Step a", From: "a", Content: strings.Repeat("x", flow.MostOfOne+extra)}}})
		if got := strings.Contains(told, "left out"); got != cut {
			t.Errorf("%d bytes above the bound: cut %t", extra, got)
		}
	}
}

// The coordinator gets the number of starts and readers beyond the limit.
func TestCoordinatorGetsCountOfVeryManySteps(t *testing.T) {
	var steps []plan.Step
	for i := range 102 {
		steps = append(steps, step(fmt.Sprintf("s%03d", i)))
	}
	p := holding(t, hub(steps...))
	p.send("s000", "m1", "", "Here.", "")
	told := p.told("coordinator/1")
	if !strings.Contains(told, "Steps that have begun: 2 others, then s002, s003,") || strings.Contains(told, "100 others") || !strings.Contains(told, "and 2 others") {
		t.Errorf("%s", told)
	}
}

// Only a step for an item has an index, which counts from 0.
func TestAStartSaysTheIndexOfItsItemAndOfNoIteration(t *testing.T) {
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		step("a"),
		{ID: "each", Loop: &plan.Loop{Items: static(2), Body: plan.Plan{Steps: []plan.Step{step("x")}}}},
		{ID: "again", Loop: &plan.Loop{Max: 2, Body: plan.Plan{Steps: []plan.Step{{ID: "y", Retries: 1, Agent: &plan.Agent{Name: "x"}}}}}},
		{ID: "tried", Loop: &plan.Loop{Items: static(2), Body: plan.Plan{Steps: []plan.Step{{ID: "c", Command: &plan.Command{Argv: []string{"make"}}}}}}},
	}})
	p.says, p.exec = named(nil), func(machine.RunCommand) event.CommandFinished { return exits(0, "") }
	p.play()
	got := map[string]string{}
	for _, e := range p.events {
		if d, is := e.Data.(event.StepStarted); is {
			got[d.Step] = "none"
			if d.Index != nil {
				got[d.Step] = fmt.Sprint(*d.Index)
			}
		}
	}
	for step, want := range map[string]string{"each": "none", "each[0]": "", "again": "none", "tried[0].c": "0", "tried[1].c": "1"} {
		if got[step] != want {
			t.Errorf("the start of %s has the index %q of %v", step, got[step], got)
		}
	}
}

// In a graph with worktrees, also inside a loop, agents and commands work in a
// worktree. Functions and stop conditions do not.
func TestAgentsAndCommandsOfAGraphWithWorktreesWorkInOne(t *testing.T) {
	for _, isolated := range []bool{true, false} {
		p := newPlayer(t, plan.Plan{Worktrees: isolated, Steps: []plan.Step{
			step("agent"), {ID: "func", Func: &plan.Func{Name: "f"}}, {ID: "command", Command: &plan.Command{Argv: []string{"make"}}},
			{ID: "loop", Loop: &plan.Loop{Max: 2, Body: plan.Plan{Steps: []plan.Step{step("inner")}}, StopWhen: []plan.Stop{command("check")}}},
		}})
		p.says = named(nil)
		p.exec = func(a machine.RunCommand) event.CommandFinished {
			if want := isolated && a.ID == "command"; a.Worktree != want {
				t.Errorf("isolated %t: the command %s has a worktree: %t", isolated, a.ID, a.Worktree)
			}
			return exits(1, "")
		}
		p.play()
		for _, a := range p.begun {
			agent := a.ID == "agent" || strings.HasSuffix(a.ID, "inner")
			if want := isolated && agent; a.Worktree != want {
				t.Errorf("isolated %t: %s has a worktree: %t", isolated, a.ID, a.Worktree)
			}
		}
	}
}
