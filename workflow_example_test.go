package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/cel"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// inTurn is a model that answers something else in each run.
func inTurn(answers ...string) pawl.Target {
	m := &turns{}
	for _, text := range answers {
		m.models = append(m.models, scripted.New("example", scripted.Turn{Text: text}))
	}
	return pawl.Target{Name: "scripted/example", Client: m, Price: &llm.Price{Output: 10}}
}

type turns struct {
	models []llm.Model
	next   atomic.Int32
}

func (t *turns) Generate(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	return t.models[int(t.next.Add(1)-1)%len(t.models)].Generate(ctx, r)
}

// A loop around a graph: code is written and reviewed until the reviewer is content,
// or a judge is. What ends the loop is a function first, so no model is asked where
// the answer says it.
func ExampleWorkflow() {
	verdict := json.RawMessage(`{"type":"object","properties":{"done":{"type":"boolean"},"reason":{"type":"string"}},"required":["done"]}`)
	w := pawl.Workflow{
		Name: "feature",
		Agents: map[string]pawl.Agent{
			"architect": {Model: says(scripted.Turn{Text: "One function, no state."})},
			"coder":     {Model: inTurn("func add(a, b int) int { return a - b }", "func add(a, b int) int { return a + b }")},
			"reviewer":  {Model: inTurn("It subtracts.", "LGTM")},
			"judge": {Schema: verdict, Model: says(
				scripted.Turn{ToolCalls: calls("submit_result", `{"done":false,"reason":"the reviewer found a mistake"}`)},
			)},
		},
		Steps: []pawl.Step{
			{ID: "design", Agent: "architect", Instructions: "Design the function."},
			{ID: "dev-cycle", DependsOn: []string{"design"}, Loop: &pawl.Loop{
				Max: 5, Delay: time.Millisecond,
				StopWhen: []pawl.Stop{
					{Func: func(v pawl.Values) (bool, error) { return strings.Contains(v.Steps["review"].Content, "LGTM"), nil }},
					{Judge: "judge"},
				},
				Steps: []pawl.Step{
					{ID: "implement", Agent: "coder", Instructions: "Implement or fix the code."},
					{ID: "review", Agent: "reviewer", Instructions: "Say LGTM, or what is wrong.", DependsOn: []string{"implement"}},
				},
			}},
		},
	}
	run, err := w.Start(context.Background(), "We need an addition.", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			log.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.StepFinished:
			fmt.Printf("%s: %s\n", d.Step, d.Content)
		case event.JudgeVerdict:
			fmt.Printf("judge: %s, %s\n", d.Verdict, d.Reason)
		}
	}
	final, err := run.Wait()
	fmt.Println(final.Status, final.Text(), err)
	// Output:
	// design: One function, no state.
	// dev-cycle.0.implement: func add(a, b int) int { return a - b }
	// dev-cycle.0.review: It subtracts.
	// judge: not_done, the reviewer found a mistake
	// dev-cycle.1.implement: func add(a, b int) int { return a + b }
	// dev-cycle.1.review: LGTM
	// dev-cycle: LGTM
	// completed LGTM <nil>
}

// A loop over items that a function finds, each deployed by an agent and checked by
// a function, at most two at once.
func ExampleLoop() {
	w := pawl.Workflow{
		Name:   "deploy",
		Agents: map[string]pawl.Agent{"deployer": {Model: says(scripted.Turn{Text: "deployed"}, scripted.Turn{Text: "deployed"}, scripted.Turn{Text: "deployed"})}},
		Steps: []pawl.Step{
			{ID: "list-services", Func: func(context.Context, pawl.Values) (pawl.Output, error) {
				return pawl.Output{Result: json.RawMessage(`{"services":["api","db","web"]}`)}, nil
			}},
			{ID: "deploy-each", DependsOn: []string{"list-services"}, Loop: &pawl.Loop{
				Concurrency: 2,
				ItemsFunc: func(v pawl.Values) (any, error) {
					var found struct{ Services []string }
					err := json.Unmarshal(v.Steps["list-services"].Result, &found)
					return found.Services, err
				},
				Steps: []pawl.Step{
					{ID: "deploy", Agent: "deployer", Instructions: "Deploy this service."},
					{ID: "verify", DependsOn: []string{"deploy"}, Func: func(_ context.Context, v pawl.Values) (pawl.Output, error) {
						result, err := json.Marshal(string(v.Item) + " is " + v.Steps["deploy"].Content)
						return pawl.Output{Result: result}, err
					}},
				},
			}},
		},
	}
	final, err := w.Run(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Status, string(final.Outcome.Result))
	// Output:
	// completed {"items":[{"result":"\"api\" is deployed","status":"completed"},{"result":"\"db\" is deployed","status":"completed"},{"result":"\"web\" is deployed","status":"completed"}]}
}

// Expressions are those of workflow files. A program that has none imports no package
// that evaluates them.
func ExampleWorkflow_expressions() {
	w := pawl.Workflow{
		Expressions: cel.New().Evaluate,
		Steps: []pawl.Step{
			{ID: "count", Func: func(context.Context, pawl.Values) (pawl.Output, error) {
				return pawl.Output{Text: "three", Result: json.RawMessage(`{"files":3}`)}, nil
			}},
			{ID: "report", DependsOn: []string{"count"}, Condition: "steps.count.result.files > 5", Func: func(context.Context, pawl.Values) (pawl.Output, error) {
				return pawl.Output{Text: "There are many files."}, nil
			}},
		},
	}
	final, err := w.Run(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d done, %d skipped\n", final.Status, final.Outcome.Steps.Completed, final.Outcome.Steps.Skipped)
	// Output:
	// completed: 1 done, 1 skipped
}
