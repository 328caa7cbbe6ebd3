package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// begun is the first event of a workflow.
func begun(t *testing.T, p plan.Plan) event.RunStarted {
	t.Helper()
	started, err := flow.Start(flow.Config{Plan: p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// happened is an event of a run.
type happened struct {
	run  string
	data event.Data
}

func paid(text string, usd float64) event.ModelResponse {
	return event.ModelResponse{Parts: event.Answer{llm.Text{Text: text}}, Cost: llm.Cost{USD: usd, Priced: true}}
}

func calls(id, label string) []event.Data {
	return []event.Data{event.ToolCall{CallID: id, Tool: "shell.exec", Describe: label}, event.ToolStarted{CallID: id}}
}

// The live lines of runs in the middle of their work.
func TestTheLiveLinesShowWhatEachRunDoesNow(t *testing.T) {
	agent := &plan.Agent{Name: "writer"}
	of := func(run string, data ...event.Data) (all []happened) {
		for _, d := range data {
			all = append(all, happened{run, d})
		}
		return all
	}
	join := func(parts ...[]happened) (all []happened) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	child := func(id, step string) event.ChildStarted {
		return event.ChildStarted{Child: id, Name: "writer", Step: step, ID: step}
	}
	loop := plan.Plan{Refine: true, Steps: []plan.Step{{ID: "loop", Loop: &plan.Loop{Max: 10, Body: plan.Plan{Steps: []plan.Step{{ID: "do", Agent: agent}}}}}}}
	inner := plan.Plan{Steps: []plan.Step{{ID: "draft", Loop: &plan.Loop{Max: 5, Body: plan.Plan{Steps: []plan.Step{{ID: "do", Agent: agent}}}}}}}
	var text strings.Builder
	for _, tt := range []struct {
		name   string
		events []happened
	}{
		{"two parallel steps, one of which has two children", join(
			of("r", begun(t, plan.Plan{Steps: []plan.Step{{ID: "one", Agent: agent}, {ID: "two", Agent: agent}, {ID: "three", Agent: agent, DependsOn: []string{"one"}}}})),
			of("r", child("c1", "one"), child("c2", "two")),
			of("c1", event.CycleStart{Cycle: 3, MaxCycles: 30}, paid("x", 0.25)),
			of("c1", calls("c1-1", "go test ./...")...),
			of("c2", event.CycleStart{Cycle: 29, MaxCycles: 30}, event.Text{Text: "First.\nNow I com"}, event.Text{Text: "pare"}),
			of("c1", event.ChildStarted{Child: "g1", Name: "reader", CallID: "c1-2"}, event.ChildStarted{Child: "g2", Name: "reader", CallID: "c1-3"}),
			of("g1", event.CycleStart{Cycle: 1}, event.Reasoning{}),
			of("g2", event.CycleStart{Cycle: 1, MaxCycles: 4}, event.ModelRetrying{}),
		)},
		{"a loop in iteration 2", join(
			of("r", begun(t, loop), event.StepStarted{Step: "loop", Attempt: 1}, child("c1", "loop.0"), event.ChildFinished{Child: "c1", Outcome: event.Outcome{OK: true, Reason: event.ReasonFinalAnswer}},
				event.Iteration{Step: "loop", Index: 0, Number: 1, MaxIterations: 10}, event.Progress{Number: 1, Learning: "It does not parse yet."},
				child("c2", "loop.1")),
			of("c2", event.CycleStart{Cycle: 1, MaxCycles: 50}, event.ModelRequested{}),
		)},
		{"a step that is a loop, in iteration 2", join(
			of("r", begun(t, inner), event.StepStarted{Step: "draft", Attempt: 1}, child("c1", "draft.0.do"), event.ChildFinished{Child: "c1"},
				event.Iteration{Step: "draft", Index: 0, Number: 1, MaxIterations: 5}, child("c2", "draft.1.do")),
			of("c2", event.CycleStart{Cycle: 25, MaxCycles: 50}, paid("Looking\nat the parser.\n", 1)),
		)},
		{"an agent with a child", join(
			of("r", event.RunStarted{Name: "lead", Config: json.RawMessage(`{}`)}, event.CycleStart{Cycle: 2, MaxCycles: 10}, paid("", 0.5),
				event.ToolCall{CallID: "r-1", Tool: "helper", Agent: true}, event.ToolStarted{CallID: "r-1"}, event.ChildStarted{Child: "c1", Name: "helper", CallID: "r-1"}),
			of("c1", event.CycleStart{Cycle: 1, MaxCycles: 5}),
			of("c1", calls("c1-1", "read \x1b[2Ja.go")...),
		)},
	} {
		p, _, _ := aTerminal(100)
		v := newTextView(io.Discard, p, screen{}, 0, "pawl")
		for i, e := range tt.events {
			if err := v.show(event.Event{Run: e.run, Seq: int64(i + 1), Time: time.Unix(1000, 0), Data: e.data}); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&text, "# %s\n%s\n%s\n\n", tt.name, told(v.tree()), p.lastLine(99))
		if err := v.show(event.Event{Run: "r", Seq: 100, Time: time.Unix(1000, 0), Data: event.RunParked{}}); err != nil {
			t.Fatal(err)
		}
		if lines := told(v.tree()); strings.Contains(lines, "cycle") {
			t.Errorf("%s: after the end the lines are\n%s", tt.name, lines)
		}
	}
	golden.File(t, filepath.Join("testdata", "live.golden"), text.String(), *update)
}

func TestTheLinesOfManyRunsAtWorkAreBounded(t *testing.T) {
	agent := &plan.Agent{Name: "a"}
	p, _, _ := aTerminal(100)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	seq := int64(0)
	add := func(d event.Data) {
		seq++
		if err := v.show(event.Event{Run: "r", Seq: seq, Time: time.Unix(1000, 0), Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	add(begun(t, plan.Plan{Steps: []plan.Step{
		{ID: "each", Loop: &plan.Loop{Items: &plan.Items{Expression: "x"}, Body: plan.Plan{Steps: []plan.Step{{ID: "do", Agent: agent}}}}},
		{ID: "after", Agent: agent, DependsOn: []string{"each"}},
	}}))
	add(event.StepStarted{Step: "each", Attempt: 1})
	for i := range 50 {
		step := fmt.Sprintf("each[%d].do", i)
		add(event.ChildStarted{Child: fmt.Sprint("c", i), Step: step, ID: step})
	}
	p.screen.height = func() int { return 13 }
	if lines := told(v.tree()); strings.Count(lines, "\n") > 9 || !strings.Contains(lines, "each[3].do") || !strings.Contains(lines, "more at work") {
		t.Errorf("the lines are\n%s", lines)
	}
}

// An event costs the terminal no more after ten thousand others: nothing is folded again.
func TestAnEventCostsTheTerminalTheSameHoweverManyCameBefore(t *testing.T) {
	p, _, _ := aTerminal(100)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	seq := int64(0)
	call := func() {
		seq += 3
		id := fmt.Sprint("r-1-", seq)
		for _, d := range []event.Data{event.ToolCall{CallID: id, Tool: "t", Describe: "does it"}, event.ToolStarted{CallID: id}, event.ToolResult{CallID: id, Output: "x"}} {
			if err := v.show(event.Event{Run: "r", Seq: seq, Time: time.Unix(1000, 0), Data: d}); err != nil {
				t.Fatal(err)
			}
			seq++
		}
	}
	first := testing.AllocsPerRun(100, call)
	for range 3000 {
		call()
	}
	if last := testing.AllocsPerRun(100, call); last > 1.2*first {
		t.Errorf("%.0f allocations for a call after thousands, %.0f for one of the first", last, first)
	}
}

// Two edits of one file and one of another, the last of them approved.
func TestEditsAreShownAndTheFilesThatChangedAreListed(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": "identity: {name: editor}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.read, fs.edit, fs.write]}\n",
		"script.yaml": "- tool_calls:\n  - {name: fs.read, arguments: {path: a.txt}}\n  - {name: fs.edit, arguments: {path: ./a.txt, old_string: one, new_string: first}}\n" +
			"  - {name: fs.edit, arguments: {path: a.txt, old_string: \"two\\nthree\", new_string: \"two\\nthird\"}}\n" +
			"  - {name: fs.edit, arguments: {path: a.txt, old_string: missing, new_string: x}}\n" +
			"  - {name: fs.write, arguments: {path: b.txt, content: \"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n\"}}\n- text: Done.\n",
		"a.txt": "one\ntwo\nthree\n",
	})
	ran := p.exits(0, "run", "agent.yaml", "Edit.")
	if !strings.Contains(ran.err, "files changed:\n  a.txt (2 times)\n  b.txt\ncompleted: ") || strings.Contains(ran.err, "-one") {
		t.Errorf("without a terminal it reads\n%s", ran.err)
	}
	log := p.exits(0, "runs", "log", p.newestRoot()).out
	for _, want := range []string{"    -one\n    +first\n", "     two\n    -three\n    +third\n", "    +8\n    … and 2 more lines\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	p.write("a.txt", "one\ntwo\nthree\n")
	y, s := p.atTerminal([]string{"NO_COLOR=1"}, "run", "agent.yaml", "Edit.")
	s.wait()
	<-y.done
	for _, want := range []string{"    -one\r\n", "    +first\r\n", "    +third\r\n", "… and 2 more lines", "files changed:\r\n", "  a.txt (2 times)\r\n"} {
		if !strings.Contains(y.plain(), want) {
			t.Errorf("the terminal has no %q:\n%s", want, y.plain())
		}
	}
}

// What a person approved was shown with the question; what a child edits is shown too.
func TestAnApprovedEditIsNotShownAgain(t *testing.T) {
	edit := event.ToolCall{CallID: "1", Tool: "fs.edit", Args: json.RawMessage(`{"path":"a.txt","old_string":"x","new_string":"y"}`)}
	done := event.ToolResult{CallID: "1", Tool: "fs.edit"}
	for _, tt := range []struct {
		run    string
		events []event.Data
		want   int
	}{
		{"r", []event.Data{edit, done}, 1},
		{"r", []event.Data{edit, event.ToolPendingApproval{CallID: "1"}, done}, 0},
		{"c", []event.Data{edit, done}, 1},
		{"c", []event.Data{edit, event.ToolPendingApproval{CallID: "1"}, done}, 0},
	} {
		p, out, _ := aTerminal(100)
		v := newTextView(io.Discard, p, screen{}, 0, "pawl")
		shown := func(run string, d event.Data) {
			if err := v.show(event.Event{Run: run, Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		shown("r", event.ChildStarted{Child: "c", Name: "helper"})
		for _, d := range tt.events {
			shown(tt.run, d)
		}
		if n := strings.Count(out.String(), "    -x\n"); n != tt.want {
			t.Errorf("run %s: the edit is shown %d times, want %d:\n%s", tt.run, n, tt.want, out)
		}
		shown("r", event.RunParked{})
		if !strings.Contains(out.String(), "files changed:\n  a.txt\n") {
			t.Errorf("run %s: the file is not listed:\n%s", tt.run, out)
		}
	}
}

// The events that a fork shares have the run that they are shared with.
func TestAForkIsTheRunThatIsShown(t *testing.T) {
	var out, progress strings.Builder
	v := newTextView(&out, newPrinter(&progress, screen{}), screen{}, 3, "pawl")
	seq := int64(0)
	for _, h := range []happened{
		{"origin", event.RunStarted{Name: "writer"}},
		{"origin", paid("shared", 0)},
		{"fork", event.RunForked{From: "origin", Seq: 2}},
		{"fork", event.CycleStart{Cycle: 2, MaxCycles: 5}},
		{"child", event.CycleStart{Cycle: 7, MaxCycles: 9}},
		{"second", event.RunForked{From: "fork", Seq: 4}},
		{"second", paid("the second fork", 0)},
		{"second", event.RunCompleted{Outcome: event.Outcome{FinalOutput: "the second fork"}}},
	} {
		seq++
		if err := v.show(event.Event{Run: h.run, Seq: seq, Data: h.data}); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "the second fork\n" {
		t.Errorf("the answer is %q", out.String())
	}
	if got := progress.String(); !strings.Contains(got, "cycle 2/5") || strings.Contains(got, "cycle 7/9") || strings.Contains(got, "shared") {
		t.Errorf("shown is %q", got)
	}
}
