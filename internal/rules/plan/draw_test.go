package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// drawn has a step of each kind, and loops of each kind that end for each reason.
func drawn() *plan.Plan {
	body := plan.Plan{Steps: []plan.Step{{ID: "try", Agent: &plan.Agent{Name: "worker"}}}}
	until := func(stops ...plan.Stop) *plan.Loop { return &plan.Loop{Max: 3, Body: body, StopWhen: stops} }
	goal := until(plan.Stop{Command: &plan.Command{Argv: []string{"go", "test"}}}, plan.Stop{Human: &plan.Human{}})
	goal.Goal = &plan.Goal{Reviewer: "critic"}
	step := plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "worker"}}}}
	return &plan.Plan{Name: "all", Steps: []plan.Step{
		{ID: "agent", Agent: &plan.Agent{Name: "worker"}},
		{ID: "func", Func: &plan.Func{Name: "sum"}, DependsOn: []string{"agent"}},
		{ID: "command", Command: &plan.Command{Argv: []string{"make", "-j2"}}, DependsOn: []string{"agent", "func"}, Condition: "inputs.x >\n  \"1\""},
		{ID: "run", Run: &plan.Run{Kind: "agent", Name: "child"}},
		{ID: "graph", Plan: &plan.Plan{Steps: []plan.Step{{ID: "in", Func: &plan.Func{Name: "f"}}, {ID: "out", Func: &plan.Func{Name: "g"}, DependsOn: []string{"in"}}}}},
		{ID: "self", Loop: &plan.Loop{Max: 2, Single: true, Body: step}},
		{ID: "each", Loop: &plan.Loop{Items: &plan.Items{Static: make([]json.RawMessage, 4), Concurrency: 2}, Body: body}},
		{ID: "each_of", Loop: &plan.Loop{Items: &plan.Items{Expression: "inputs.files"}, Body: body}},
		{ID: "either", Loop: until(plan.Stop{Expression: "iteration > 1"}, plan.Stop{Judge: "critic"}, plan.Stop{Regex: "done"},
			plan.Stop{Eval: &eval.Evaluator{Kind: eval.Contains, Value: "ok"}}, plan.Stop{Eval: &eval.Evaluator{Kind: eval.Rubric}, Judge: "jury"}, plan.Stop{})},
		{ID: "goal", Loop: goal},
	}}
}

func TestATreeHasALineForEachStep(t *testing.T) {
	want := strings.TrimPrefix(`
all
├─ agent  [worker]
├─ func  [func sum]  after agent
├─ command  [make -j2]  after agent, func  if inputs.x > "1"
├─ run  [child]
├─ graph
│  ├─ in  [func f]
│  └─ out  [func g]  after in
├─ self  [worker]  2 times
├─ each  for each of 4 items, 2 at once
│  └─ try  [worker]
├─ each_of  for each of inputs.files
│  └─ try  [worker]
├─ either  up to 3 times, until iteration > 1 or critic says so or /done/ or contains "ok" or jury says so or ?
│  └─ try  [worker]
└─ goal  up to 3 times, until 'go test' and a person approves
   └─ try  [worker]
`, "\n")
	if got := strings.ReplaceAll(drawn().Tree(), "`", "'"); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestALongTextIsCutToALine(t *testing.T) {
	for n, want := range map[int]string{80: strings.Repeat("é", 80), 81: strings.Repeat("é", 79) + "…"} {
		p := plan.Plan{Name: "p", Steps: []plan.Step{{ID: "a", Condition: strings.Repeat("é", n)}}}
		if got := p.Tree(); got != "p\n└─ a  if "+want+"\n" {
			t.Errorf("%d characters: %s", n, got)
		}
	}
}

func TestAFlowchartHasANodeForEachStepAndItsEdges(t *testing.T) {
	p := drawn()
	p.Steps = p.Steps[:5]
	want := strings.TrimPrefix(`
flowchart TD
  s0["agent<br/>[worker]"]
  s1["func<br/>[func sum]"]
  s2["command<br/>[make -j2]<br/>if inputs.x &gt; &quot;1&quot;"]
  s3["run<br/>[child]"]
  subgraph s4["graph"]
    s4_0["in<br/>[func f]"]
    s4_1["out<br/>[func g]"]
    s4_0 --> s4_1
  end
  s0 --> s1
  s0 --> s2
  s1 --> s2
`, "\n")
	if got := p.Mermaid(); got != want {
		t.Errorf("got\n%s", got)
	}
}
