package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal/memory"
)

// The test changes one field of the iteration block at a time, for a run with long
// answers. The run shows the effect of each.
// rows: ALDO-4, ALDO-5, ALDO-7, ALDO-12, ALDO-48
func TestEachFieldOfAnIterationHasItsEffect(t *testing.T) {
	type seen struct {
		Reason event.Reason
		Cycles int
		// Strategy is how the history was first compressed; Summaries counts the
		// model's answers that were summaries.
		Strategy  string
		Summaries int
	}
	var script strings.Builder
	for i := range 40 {
		fmt.Fprintf(&script, "- text: %q\n", fmt.Sprint("Step ", i+1, ". ")+strings.Repeat("Still at work. ", 40))
	}
	path := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := func(cycles, window int, strategy, text string) string {
		return fmt.Sprintf("tools: {allow: []}\niteration: {max_cycles: %d, context_window: %d, summary_strategy: %s, termination_conditions: [{kind: text-includes, text: %q}]}",
			cycles, window, strategy, text)
	}
	for _, tt := range []struct {
		name, file string
		want       seen
	}{
		{"as it is", fields(12, 100_000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 12, "", 0}},
		{"max_cycles", fields(7, 100_000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 7, "", 0}},
		{"context_window", fields(12, 1000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 12, "rolling-window", 0}},
		{"summary_strategy", fields(12, 1000, "periodic-summary", "never"), seen{event.ReasonMaxCycles, 12, "periodic-summary", 3}},
		{"termination_conditions", fields(12, 100_000, "rolling-window", "Step 3."), seen{event.ReasonConditionMet, 3, "", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			o.Model = "scripted/" + path
			started, _, env := start(t, file(t, tt.file), o)
			_, events := run(t, memory.New(nil), started, env)
			got := seen{Reason: outcome(t, events).Reason, Cycles: outcome(t, events).Cycles}
			for _, e := range events {
				switch d := e.Data.(type) {
				case event.HistoryCompressed:
					if got.Strategy == "" {
						got.Strategy = d.Strategy
					}
				case event.ModelResponse:
					if d.Purpose == event.PurposeSummary {
						got.Summaries++
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An iteration's calls run in parallel, even those that change something, which a plain
// agent would run one after another.
// rows: ALDO-43
func TestTheCallsOfAnIterationsCycleStartTogether(t *testing.T) {
	script := filepath.Join(t.TempDir(), "writes.yaml")
	const turns = "- tool_calls: [{name: fs.write, arguments: {path: a, content: x}}, {name: fs.write, arguments: {path: b, content: x}}, {name: fs.write, arguments: {path: c, content: x}}]\n- text: done\n"
	if err := os.WriteFile(script, []byte(turns), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, together := range map[string]bool{
		"iteration: {max_cycles: 1}": true,
		"max_cycles: 1":              false,
		"iteration: {max_cycles: 1, tool_dispatch: ordered-groups}": false,
	} {
		o := options(t)
		o.Model = "scripted/" + script
		started, _, env := start(t, file(t, "tools: {allow: [fs.write]}\n"+text), o)
		_, events := run(t, memory.New(nil), started, env)
		begun, atFirst := 0, 0
		for _, e := range events {
			switch e.Data.(type) {
			case event.ToolStarted:
				begun++
			case event.ToolResult:
				if atFirst == 0 {
					atFirst = begun
				}
			}
		}
		if begun != 3 || (atFirst == 3) != together {
			t.Errorf("%s: %d of %d calls had begun when the first was settled", text, atFirst, begun)
		}
	}
}

// The test runs the specification's own example unchanged, and checks which conditions
// end it.
// rows: ALDO-11
func TestTheSeedsExampleRunsUntilOneOfItsConditionsIsMet(t *testing.T) {
	shell := func(command string) string {
		return fmt.Sprintf("- tool_calls: [{name: shell.exec, arguments: {command: %q}}]\n", command)
	}
	var ceiling strings.Builder
	notYet := func(n int) string {
		return shell(fmt.Sprint("echo tsc ", n, "; false")) + shell(fmt.Sprint("echo eslint ", n)) + fmt.Sprintf("- text: Step %d is done.\n", n)
	}
	for n := range 11 {
		ceiling.WriteString(notYet(n))
	}
	for _, tt := range []struct {
		name, script string
		reason       event.Reason
		index        int
		cycles       int
	}{
		{"the compiler is content", notYet(1) + shell("echo tsc; true"), event.ReasonConditionMet, 0, 4},
		{"the model says that the task is done", notYet(1) + "- text: <task-complete>\n", event.ReasonConditionMet, 1, 4},
		{"both at once", "- text: <task-complete>\n  tool_calls: [{name: shell.exec, arguments: {command: echo tsc}}]\n", event.ReasonConditionMet, 0, 1},
		{"neither, in thirty cycles", ceiling.String(), event.ReasonMaxCycles, -1, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "seed.yaml")
			if err := os.WriteFile(script, []byte(tt.script), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options(t)
			o.Model, o.Approve = "scripted/"+script, agent.ApproveAll
			started, _, env := start(t, "testdata/good/aldo-seed.yaml", o)
			_, events := run(t, memory.New(nil), started, env)
			got := outcome(t, events)
			index := -1
			if got.Index != nil {
				index = *got.Index
			}
			if got.Reason != tt.reason || index != tt.index || got.Cycles != tt.cycles || !got.OK {
				t.Errorf("ended with %s of condition %d after %d cycles, ok %t (%+v)", got.Reason, index, got.Cycles, got.OK, got.Error)
			}
		})
	}
}

// An iteration continues where a plain agent's run ends: its calls may fail as often as
// there are cycles.
// rows: ALDO-55
func TestNoNumberOfFailuresEndsAnIteration(t *testing.T) {
	var turns strings.Builder
	for i := range 13 {
		said := strings.Repeat(string(rune('a'+i)), 9)
		fmt.Fprintf(&turns, "- tool_calls: [{name: shell.exec, arguments: {command: echo %s; exit %d}}, {name: fs.read, arguments: {path: %s}}]\n", said, i+1, said)
	}
	turns.WriteString("- text: <done>\n")
	script := filepath.Join(t.TempDir(), "failing.yaml")
	if err := os.WriteFile(script, []byte(turns.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]event.Reason{
		"":           event.ReasonRepeatedFailure,
		"iteration:": event.ReasonConditionMet,
	} {
		if text != "" {
			text += " {termination_conditions: [{kind: text-includes, text: <done>}]}"
		}
		o := options(t)
		o.Model = "scripted/" + script
		started, _, env := start(t, file(t, "tools: {allow: [shell.exec, fs.read], approvals: {shell.exec: never}}\n"+text), o)
		_, events := run(t, memory.New(nil), started, env)
		if got := outcome(t, events); got.Reason != want {
			t.Errorf("%q: ended with %s after %d cycles (%+v)", text, got.Reason, got.Cycles, got.Error)
		}
	}
}
