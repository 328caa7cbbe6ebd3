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
