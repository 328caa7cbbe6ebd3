package workflow_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
)

// rows: DAG-3, DAG-4, DAG-25, DAG-27..29, DAG-43..46
//
// Each rule is broken by itself, in the second step of the file too.
func TestEachRuleOfLoopsHoldsByItself(t *testing.T) {
	const each = "forEach: [1, 2], "
	for name, c := range map[string]struct{ loop, want string }{
		"until without maxIterations":        {`until: "content == 'x'"`, "loop.maxIterations"},
		"a judge without maxIterations":      {"untilAgent: required", "loop.maxIterations"},
		"a delay without maxIterations":      {"delay: 1s", "loop.maxIterations"},
		"forEach with maxIterations":         {each + "maxIterations: 2", "loop.maxIterations"},
		"forEach with until":                 {each + `until: "content == 'x'"`, "loop.until"},
		"forEach with a judge":               {each + "untilAgent: required", "loop.untilAgent"},
		"forEach with a delay":               {each + "delay: 1s", "loop.delay"},
		"a judge whose done is not required": {"maxIterations: 2, untilAgent: optional", "done of the agent optional is not required"},
		"a judge whose done is a text":       {"maxIterations: 2, untilAgent: text", "done of the agent text is no boolean"},
		"a judge without done":               {"maxIterations: 2, untilAgent: other", "done of the agent other is no boolean"},
		"a judge without a schema":           {"maxIterations: 2, untilAgent: free", "the agent free has no resultSchema"},
		"a dependency on the step before":    {"maxIterations: 2, steps: [{id: in, dependsOn: [first]}]", "loop.steps[0].dependsOn[0]"},
		"a dependency on the loop's step":    {"maxIterations: 2, steps: [{id: in, dependsOn: [second]}]", "loop.steps[0].dependsOn[0]"},
		"a dependency of the second step":    {each + "steps: [{id: in}, {id: out, dependsOn: [in, first]}]", "loop.steps[1].dependsOn[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workflow.Parse("w.yaml", []byte(`name: x
agents:
  free: {description: a, prompt: b}
  required: {description: a, prompt: b, resultSchema: {type: object, properties: {done: {type: boolean}}, required: [done]}}
  optional: {description: a, prompt: b, resultSchema: {type: object, properties: {done: {type: boolean}, why: {type: string}}, required: [why]}}
  text: {description: a, prompt: b, resultSchema: {type: object, properties: {done: {type: string}}, required: [done]}}
  other: {description: a, prompt: b, resultSchema: {type: object, properties: {why: {type: string}}, required: [why]}}
steps:
- {id: first, loop: {maxIterations: 2, untilAgent: required}}
- {id: second, dependsOn: [first], loop: {`+c.loop+"}}\n"), spec.Options{})
			if err == nil || strings.Count(err.Error(), "steps[1].loop") != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %s of steps[1], got %v", c.want, err)
			}
		})
	}
}

// A step's loop has the carry and stop_when of an agent's loop, and the same problems
// with them.
func TestALoopOfAStepHasTheFormsOfAnAgentsLoop(t *testing.T) {
	for keys, want := range map[string]string{
		"carry: {log: {extract: tail, chars: 9}}, stop_when: [{regex: a}]":         "",
		"carry: none, stop_when: [{rubric: {criteria: [It is short]}}]":            "",
		"carry: {log: {chars: 0}}":                                                 "carry.log.chars: is 0",
		"carry: {log: {chars: 9, max_entries: 101}}":                               "carry.log.max_entries: is 101",
		"carry: {log: {extract: middle}}":                                          "carry.log.extract: ",
		"carry: {log: {chars: 9}, iteration: none}":                                "carry: has iteration beside log",
		"stop_when: [{regex: a}, {regex: '('}]":                                    "stop_when[1].regex: error parsing regexp",
		"stop_when: [{regex: a}, {regex: b, contains: c}]":                         "stop_when[1]: has 2 of them",
		"stop_when: [{regex: a}, {rubric: {criteria: [It is short], pass_at: 2}}]": "stop_when[1].rubric: it passes at 2",
	} {
		_, ofAgent := spec.ParseAgent("a.yaml", []byte("{identity: {name: a}, loop: {loopEnabled: true, maxIterations: 2}, "+keys+"}"), spec.Options{})
		_, ofStep := workflow.Parse("w.yaml", []byte("{apiVersion: pawl/v1, name: w, steps: [{id: a, loop: {maxIterations: 2, "+keys+"}}]}"), spec.Options{})
		for place, err := range map[string]error{"": ofAgent, "steps[0].loop.": ofStep} {
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), ": "+place+want) {
				t.Errorf("%s gives %v, want %q", keys, err, place+want)
			}
		}
	}
}
