package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

const shellAgent = `
identity: {name: worker}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec, fs.read], approvals: {shell.exec: never}}
`

// shellTurn is a script's turn that runs a command.
func shellTurn(command string) string {
	return fmt.Sprintf("- tool_calls: [{name: shell.exec, arguments: {command: %q}}]\n", command)
}

// rows: ALDO-13, ALDO-14, ALDO-15, ALDO-17, ALDO-50
func TestTheCeilingOfAnIterationStopsTheLoopAndIsOK(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent + "iteration: {max_cycles: 2}\n",
		"script.yaml": shellTurn("echo one") + shellTurn("echo two") + shellTurn("echo three"),
	})
	events := p.events(p.exits(0, "run", "agent.yaml", "go", "--json").out)
	var cycles []int
	for _, c := range of[event.CycleStart](events) {
		cycles = append(cycles, c.Cycle)
		if c.MaxCycles != 2 {
			t.Errorf("cycle %d says maxCycles %d", c.Cycle, c.MaxCycles)
		}
	}
	if !slices.Equal(cycles, []int{1, 2}) {
		t.Errorf("cycles %v, want 1 and 2", cycles)
	}
	if by := of[event.RunTerminatedBy](events); len(by) != 1 || by[0].Reason != "maxCycles" {
		t.Errorf("terminated by %+v", by)
	}
	if o := p.outcome(events); !o.OK || o.Completed || o.Status != event.StatusStopped {
		t.Errorf("outcome %+v", o)
	}
}

// rows: HAR-20, HAR-30
func TestTheCycleCapOfAPlainAgentIsExitCodeThree(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("echo one") + shellTurn("echo two") + shellTurn("echo three"),
	})
	events := p.events(p.exits(3, "run", "agent.yaml", "go", "--json", "--max-cycles", "2").out)
	if n := len(of[event.ModelRequested](events)); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
	o := p.outcome(events)
	if o.Reason != event.ReasonMaxCycles || o.OK || o.Completed || o.NextSafeAction == "" {
		t.Errorf("outcome %+v", o)
	}
}

// rows: ALF-5
func TestWithoutACapARunHasFiftyCycles(t *testing.T) {
	var script strings.Builder
	for i := range 51 {
		fmt.Fprintf(&script, "- tool_calls: [{name: fs.read, arguments: {path: f%d}}]\n", i)
	}
	files := map[string]string{"agent.yaml": shellAgent, "script.yaml": script.String()}
	for i := range 51 {
		files[fmt.Sprintf("f%d", i)] = fmt.Sprint("content ", i)
	}
	p := newProject(t, files)
	events := p.events(p.exits(3, "run", "agent.yaml", "go", "--json").out)
	if n := len(of[event.CycleStart](events)); n != 50 {
		t.Errorf("%d cycles, want 50", n)
	}
}

// rows: ALDO-16, ALDO-29..35, ALDO-37
func TestTheFirstDeclaredConditionThatHoldsEndsTheRun(t *testing.T) {
	text := "- text: almost <done>\n"
	tests := []struct {
		name       string
		conditions string
		script     string
		cycles     int
		kind       string
		index      int
	}{
		{"text includes", `[{kind: text-includes, text: <done>}]`, "- text: not yet\n" + text, 2, "text-includes", 0},
		{"exit code", `[{kind: tool-result, tool: shell.exec, match: {exit_code: 0}}]`, shellTurn("false") + shellTurn("true"), 2, "tool-result", 0},
		{"contains", `[{kind: tool-result, tool: shell.exec, match: {contains: ok}}]`, shellTurn("echo no") + shellTurn("echo ok; false"), 2, "tool-result", 0},
		{"exit code and contains", `[{kind: tool-result, tool: shell.exec, match: {exit_code: 0, contains: ok}}]`,
			shellTurn("echo ok; false") + shellTurn("echo no") + shellTurn("echo ok"), 3, "tool-result", 0},
		{"another tool's result", `[{kind: tool-result, tool: fs.read, match: {contains: ok}}, {kind: text-includes, text: <done>}]`,
			shellTurn("echo ok") + text, 2, "text-includes", 1},
		{"declared order", `[{kind: text-includes, text: nothing}, {kind: text-includes, text: done}, {kind: text-includes, text: <done>}]`, text, 1, "text-includes", 1},
		{"in the last cycle", `[{kind: text-includes, text: <done>}]`, "- text: a\n- text: b\n" + text, 3, "text-includes", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, map[string]string{
				"agent.yaml":  shellAgent + "iteration:\n  max_cycles: 3\n  termination_conditions: " + tt.conditions + "\n",
				"script.yaml": tt.script,
			})
			events := p.events(p.exits(0, "run", "agent.yaml", "go", "--json").out)
			by := of[event.RunTerminatedBy](events)
			if len(by) != 1 || by[0].Reason != event.ReasonConditionMet || by[0].Kind != tt.kind || by[0].Index == nil || *by[0].Index != tt.index {
				t.Errorf("terminated by %+v, want condition %d of kind %s", by, tt.index, tt.kind)
			}
			if o := p.outcome(events); o.Cycles != tt.cycles || !o.OK || !o.Completed {
				t.Errorf("outcome %+v, want ok after %d cycles", o, tt.cycles)
			}
		})
	}
}

// rows: ALDO-48, ALDO-49
func TestOnlyACycleWithoutCallsIsNudged(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent + "iteration:\n  max_cycles: 5\n  termination_conditions: [{kind: text-includes, text: <done>}]\n",
		"script.yaml": shellTurn("echo hi") + "- text: thinking\n" +
			"- text: <done>\n  expect: {messages: 5}\n",
	})
	events := p.events(p.exits(0, "run", "agent.yaml", "go", "--json").out)
	nudges := 0
	for i, e := range events {
		if e.Type() != event.TypeNudge {
			continue
		}
		nudges++
		if e.Cycle != 2 || events[i-1].Type() != event.TypeBudgetCommitted || events[i+1].Type() != event.TypeCycleStart {
			t.Errorf("nudge in cycle %d between %s and %s", e.Cycle, events[i-1].Type(), events[i+1].Type())
		}
	}
	if nudges != 1 {
		t.Errorf("%d nudges, want 1", nudges)
	}
}

// rows: HAR-26
func TestAFinalAnswerEndsTheRun(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": shellAgent, "script.yaml": shellTurn("true") + "- text: all done\n"})
	f := p.exits(0, "run", "agent.yaml", "go")
	if f.out != "all done\n" {
		t.Errorf("stdout %q", f.out)
	}
	o := p.outcome(p.events(p.exits(0, "runs", "events", p.newest()).out))
	if o.Reason != event.ReasonFinalAnswer || !o.Completed || !o.OK {
		t.Errorf("outcome %+v", o)
	}
}

// rows: HAR-27
func TestAnAnswerWithoutCallsStopsWhereTheFileSaysSo(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": shellAgent + "on_no_tool_call: stop\n", "script.yaml": "- text: hm\n"})
	events := p.events(p.exits(3, "run", "agent.yaml", "go", "--json").out)
	if o := p.outcome(events); o.Reason != event.ReasonNoAnswerOrCall || o.Completed {
		t.Errorf("outcome %+v", o)
	}
}

// rows: ALF-13, ALF-14
func TestAlfredViewOfALoopRunsToTheModelsEnd(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": "- text: Looking.\n  tool_calls: [{name: shell.exec, arguments: {command: echo hi}}]\n- text: Done.\n",
	})
	f := p.exits(0, "run", "agent.yaml", "go", "--view", "alfred")
	var types []string
	for line := range strings.Lines(f.out) {
		var o struct{ Type, Status string }
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		types = append(types, o.Type+o.Status)
	}
	if want := []string{"text", "tool_use", "tool_result", "text", "donesuccess"}; !slices.Equal(types, want) {
		t.Errorf("%v, want %v", types, want)
	}
}

// rows: ALDO-63
func TestEveryCycleCanBeRebuiltFromTheJournalAlone(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent,
		"script.yaml": "- text: First I look.\n  tool_calls: [{name: fs.read, arguments: {path: nowhere}}, {name: shell.exec, arguments: {command: echo hi}}]\n" +
			"- error: {status: 529, class: overloaded}\n- text: Done.\n",
	})
	p.exits(0, "run", "agent.yaml", "go")
	id := p.newest()
	for _, name := range []string{"agent.yaml", "script.yaml"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got page
	if err := json.Unmarshal([]byte(p.exits(0, "runs", "show", id, "--json").out), &got); err != nil {
		t.Fatal(err)
	}
	want := []view.CycleLine{
		{Cycle: 1, Model: "scripted/script.yaml", Text: "First I look.", Calls: []string{"read nowhere", "run echo hi"}, Errors: 1},
		{Cycle: 2, Model: "scripted/script.yaml", Text: "Done.", Retries: 1},
	}
	if diff := cmp.Diff(want, got.PerCycle, cmpopts.IgnoreFields(view.CycleLine{}, "Context", "Window", "WindowShare", "Start", "Usage", "USD"), cmpopts.IgnoreUnexported(view.CycleLine{})); diff != "" {
		t.Error(diff)
	}
	if got.Input != "go" || got.Usage.Output == 0 {
		t.Errorf("input %q, usage %+v", got.Input, got.Usage)
	}
}

// A reader gets the end of the loop exactly once, however the run leaves and however
// often it is read, and never while the loop runs.
//
// rows: ALF-15, ALF-16, ALF-22, ALF-24, ALF-25, ALF-43
func TestAlfredViewHasOneEndOfTheLoop(t *testing.T) {
	for _, tt := range []struct {
		name, file, script string
		args               []string
		exit               int
		want               []string
	}{
		{name: "the turns are used up", script: goesOn, args: []string{"--max-cycles", "1"}, exit: 3, want: []string{"error", "done max_turns"}},
		{name: "the model's error", script: "- error: {status: 401, class: auth}\n", exit: 1, want: []string{"error", "done provider_error"}},
		{name: "the last retry", file: "budgets: {max_retries_per_model_call: 1}\n", script: strings.Repeat("- error: {status: 529, class: overloaded}\n", 2),
			exit: 1, want: []string{"retrying", "error", "done provider_error"}},
		{name: "parked for a person", file: gated, script: shellTurn("echo hi"), exit: 4, want: []string{"done aborted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, map[string]string{
				"agent.yaml":  "identity: {name: ending}\nmodel_policy: {primary: scripted/script.yaml}\n" + tt.file,
				"script.yaml": tt.script, "a.txt": "x",
			})
			driven := p.exits(tt.exit, append([]string{"run", "agent.yaml", "go", "--view", "alfred"}, tt.args...)...)
			id := p.newest()
			read := p.exits(0, "runs", "events", id, "--view", "alfred")
			followed := p.exits(0, "runs", "events", id, "--view", "alfred", "--follow")
			for who, f := range map[string]finished{"driven": driven, "read": read, "followed": followed} {
				if got := endOfLoop(t, f.out); !slices.Equal(got, tt.want) {
					t.Errorf("%s: %v, want %v\n%s", who, got, tt.want, f.out)
				}
			}
		})
	}
}

// rows: ALF-22
func TestAlfredViewHasOnlyTheRunsEnd(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("touch begun; while [ ! -e go ]; do sleep 0.01; done") + "- text: Done.\n",
	})
	s := p.start("run", "agent.yaml", "go")
	p.eventually("the command runs", p.exists("begun"))
	id := p.newest()
	if got := endOfLoop(t, p.exits(0, "runs", "events", id, "--view", "alfred").out); len(got) > 0 {
		t.Errorf("while the run goes on: %v", got)
	}
	p.write("go", "")
	if f := s.wait(); f.code != 0 {
		t.Fatal(f.err)
	}
	for _, follow := range []string{"--follow=false", "--follow"} {
		if got := endOfLoop(t, p.exits(0, "runs", "events", id, "--view", "alfred", "--after", "1000", follow).out); len(got) > 0 {
			t.Errorf("%s behind the end of a run that succeeded: %v", follow, got)
		}
	}
}

// endOfLoop is what a reader of Alfred's words hears of retries, errors and the end.
func endOfLoop(t *testing.T, out string) (heard []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var o struct{ Type, Status string }
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if o.Type == "retrying" || o.Type == "error" || o.Type == "done" {
			heard = append(heard, strings.TrimSpace(o.Type+" "+o.Status))
		}
	}
	return heard
}
