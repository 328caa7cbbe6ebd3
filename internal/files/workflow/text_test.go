package workflow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
)

// told are what is wrong with a workflow and what it is warned of, a line each.
func toldOf(t *testing.T, file string) (wrong, warned []string) {
	t.Helper()
	w, err := workflow.Parse("w.yaml", []byte(file), spec.Options{Model: "scripted/x.yaml"})
	problems, _ := errors.AsType[decode.Errors](err)
	if err != nil && problems == nil {
		t.Fatal(err)
	}
	line := func(p decode.Problem) string { return fmt.Sprintf("%d %s %s", p.Line, p.Path, p.Message) }
	for _, p := range problems {
		wrong = append(wrong, line(p))
	}
	if err == nil {
		for _, p := range append(w.Warnings, w.Unseen...) {
			warned = append(warned, line(p))
		}
	}
	return wrong, warned
}

func TestNamesOfValuesAreHeldToWhatAStepSees(t *testing.T) {
	const head = "apiVersion: pawl/v1\nname: x\nsteps:\n- {id: list, instructions: List.}\n- {id: each, dependsOn: [list], loop: {forEach: [a, b], steps: [{id: in, instructions: 'Do {{item}}, {{index}} and {{steps.list.content}}.'}, {id: then, dependsOn: [in], command: [echo, '{{steps.in.result.n}}']}]}}\n"
	for step, want := range map[string]string{
		"{id: z, dependsOn: [each], instructions: '{{input}} {{steps.each.results}} {{steps.list.content}}'}": "",
		"{id: z, dependsOn: [list], command: [echo, '{{item}}'], loop: {forEach: steps.list.result}}":         "",
		"{id: z, instructions: '{{item}}'}":                                                                   "6 steps[2].instructions {{item}} is known within forEach alone",
		"{id: z, instructions: '{{steps.list.content}}'}":                                                     "names the step list, on which this step does not depend",
		"{id: z, dependsOn: [list], instructions: '{{steps.lst.content}}'}":                                   "names the step lst, which there is not here",
		"{id: z, dependsOn: [list], instructions: '{{steps.list.results}}'}":                                  "which is no forEach",
		"{id: z, dependsOn: [list], instructions: '{{steps.list}}'}":                                          "names no value",
		"{id: z, dependsOn: [list], instructions: '{{steps.list.contents}}'}":                                 "names no value of a step",
		"{id: z, dependsOn: [each], command: [echo, '{{steps.in.content}}']}":                                 "6 steps[2].command[1] {{steps.in.content}} names the step in, which there is not here",
		"{id: z, command: ['{{input}}', x]}":                                                                  "steps[2].command[0] is the program, which no value may name",
		"{id: z, command: [sh, -c, 'echo {{input}}']}":                                                        "steps[2].command[2] is a script, which would run what the value holds",
		"{id: z, command: [env, A=b, /bin/bash, -euc, 'echo {{input}}']}":                                     "is a script",
		"{id: z, command: [python3, -c, 'print({{input}})']}":                                                 "is a script",
		"{id: z, command: [sh, -c, 'echo \"$1\"', sh, '{{input}}']}":                                          "",
		"{id: z, command: [grep, -e, '{{input}}', f]}":                                                        "",
		"{id: z, instructions: '\\{{item}} and {% raw %}'}":                                                   "",
		"{id: z, loop: {maxIterations: 2, stop_when: [{command: {argv: [test, '{{input}}', '{{index}}']}}]}}": "steps[2].loop.stop_when[0].command.argv[2] {{index}} is known within forEach alone",
	} {
		wrong, _ := toldOf(t, head+"- "+step+"\n")
		if got := strings.Join(wrong, "; "); want == "" && got != "" || !strings.Contains(got, want) || want != "" && len(wrong) != 1 {
			t.Errorf("%s\ngot  %s\nwant %s", step, got, want)
		}
	}
	_, warned := toldOf(t, head+"- {id: z, instructions: 'Fill in {{user}}.'}\n")
	if !slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "{{user}} names no value and stays as it is") }) {
		t.Errorf("%q", warned)
	}
}

// A plain workflow file has no such names; a name of nothing stays as text.
func TestAPlainFileKeepsNamesOfNothing(t *testing.T) {
	w, err := workflow.Parse("w.yaml", []byte("name: x\nsteps: [{id: a, instructions: 'Use {{item}}, {{other}} and {{input}}.'}]"), spec.Options{Model: "scripted/x.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Plan.Steps[0].Agent.Instructions; got != `Use \{{item}}, {{other}} and {{input}}.` || len(w.Warnings) != 1 {
		t.Errorf("%s, %v", got, w.Warnings)
	}
}

func TestAnInputThatLaterStepsDoNotSeeIsAWarning(t *testing.T) {
	const agents = "name: x\nagents: {w: {description: Works.}}\nsteps:\n- {id: a, agent: w, instructions: Plan.}\n"
	for steps, want := range map[string]string{
		"": "",
		"- {id: b, agent: w, dependsOn: [a], instructions: Build.}\n- {id: c, agent: w, dependsOn: [b], loop: {maxIterations: 2}}\n": "5 steps[1] INPUT is told only to the steps without dependsOn (a); b, c would see it where instructions say {{input}}",
		"- {id: b, agent: w, dependsOn: [a], instructions: 'Build {{input}}.'}\n- {id: c, agent: w, dependsOn: [b]}\n":               "",
		"- {id: b, agent: w, instructions: Build.}\n": "",
	} {
		if _, warned := toldOf(t, agents+steps); strings.Join(warned, "; ") != want {
			t.Errorf("%q, want %q", warned, want)
		}
	}
	const commands = "apiVersion: pawl/v1\nname: x\nsteps:\n- {id: a, command: [make]}\n"
	for step, want := range map[string]bool{"- {id: b, dependsOn: [a], instructions: Fix it.}": true, "- {id: b, dependsOn: [a], command: [make]}": false} {
		if _, warned := toldOf(t, commands+step); (len(warned) > 0) != want || want && !strings.Contains(warned[0], "INPUT is told to no step") {
			t.Errorf("%s: %q", step, warned)
		}
	}
}

// The report's own input, and its other places.
func TestAConditionOnTextThatIsNeverThereIsAWarning(t *testing.T) {
	const head = "apiVersion: pawl/v1\nname: x\nsteps:\n- {id: a, command: [echo, ok]}\n"
	for step, want := range map[string]string{
		`- {id: b, dependsOn: [a], condition: "steps.a.content == 'ok'", command: [echo, b]}`:           "",
		`- {id: b, dependsOn: [a], condition: "steps.a.content == 'ok\n'", command: [echo, b]}`:         "5 steps[1].condition steps.a.content is never",
		`- {id: b, command: [x], loop: {maxIterations: 2, until: "content == 'ok\r\n'"}}`:               "5 steps[1].loop.until content is never",
		`- {id: b, command: [x], loop: {maxIterations: 2, stop_when: [{cel: "status == 'ok'"}]}}`:       "5 steps[1].loop.stop_when[0].cel status is never",
		`- {id: b, loop: {forEach: [x, y], steps: [{id: in, condition: "item == 'z'", command: [x]}]}}`: "5 steps[1].loop.steps[0].condition item is never",
	} {
		wrong, warned := toldOf(t, head+strings.NewReplacer(`\n`, `\\n`, `\r`, `\\r`).Replace(step))
		if got := strings.Join(append(wrong, warned...), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", step, got, want)
		}
	}
}
