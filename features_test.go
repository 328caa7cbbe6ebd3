package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// says is a model that answers from a script, so that the examples need no key
// and no network. A program puts a client of a provider in its place.
func says(turns ...scripted.Turn) pawl.Target {
	return pawl.Target{Name: "scripted/example", Client: scripted.New("example", turns...), Price: &llm.Price{Output: 10}}
}

func calls(name, arguments string) []scripted.Call {
	return []scripted.Call{{Name: name, Arguments: json.RawMessage(arguments)}}
}

// A first run: a model, a task, an answer.
func Example() {
	agent := pawl.Agent{Model: says(scripted.Turn{Text: "Hello, world."})}
	final, err := agent.Run(context.Background(), "Greet the world.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Status, final.Text())
	// Output: completed Hello, world.
}

// A model by its name: with "anthropic/claude-sonnet-4-5" the key comes from
// ANTHROPIC_API_KEY, and what fails says why.
func Example_named() {
	for _, name := range []string{"scripted/testdata/umbrella.yaml", "scripted/testdata/refused.yaml"} {
		model, err := models.Named(name)
		if err != nil {
			log.Fatal(err)
		}
		agent := pawl.Agent{Model: model}
		final, err := agent.Run(context.Background(), "How do I dress in Bergen?")
		if err == nil {
			err = final.Err()
		}
		if err != nil {
			fmt.Println(strings.TrimPrefix(err.Error(), "pawl: run "+final.Run+" "))
			continue
		}
		fmt.Println(final.Text())
	}
	// Output:
	// Take an umbrella.
	// failed: model_error: invalid x-api-key
}

// An agent may give tasks to another one. What the other one uses is part of
// the run's cost and bounded by its limits.
func ExampleAgentTool() {
	historian := pawl.Agent{
		Name:  "historian",
		Model: says(scripted.Turn{Text: "It was finished in 1889."}),
	}
	agent := pawl.Agent{
		Agents: []pawl.AgentTool{{Name: "ask_historian", Description: "Ask about history.", Agent: historian}},
		Limits: pawl.Limits{USDPerRun: 0.50},
		Model: says(
			scripted.Turn{ToolCalls: calls("ask_historian", `{"task":"When was the Eiffel Tower finished?"}`)},
			scripted.Turn{Text: "In 1889."},
		),
	}
	run, err := agent.Start(context.Background(), "How old is the Eiffel Tower?", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			log.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			fmt.Println("the historian:", d.Output)
		case event.RunCompleted:
			fmt.Println("the agent:", d.Outcome.FinalOutput)
		}
	}
	// Output:
	// the historian: It was finished in 1889.
	// the agent: In 1889.
}

// A tool is a function. Its schema comes from the argument type, and a call
// whose arguments do not fit it never reaches the function.
func ExampleTool() {
	type place struct {
		City string `json:"city" jsonschema:"the city's name"`
	}
	weather := pawl.Tool("weather", "Say what the weather is.", func(_ context.Context, p place) (string, error) {
		return "It rains in " + p.City + ".", nil
	})
	weather.ReadOnly = true
	// What it says is its own, so it needs no fence around it.
	weather.Labels = &event.Labels{}

	agent := pawl.Agent{
		Tools: []tool.Tool{weather},
		Model: says(
			scripted.Turn{ToolCalls: calls("weather", `{"city":"Bergen"}`)},
			scripted.Turn{Text: "Take an umbrella."},
		),
	}
	final, err := agent.Run(context.Background(), "How do I dress in Bergen?")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range final.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				fmt.Printf("%s: %s\n", m.Role, p.Text)
			case llm.ToolCall:
				fmt.Printf("%s calls %s %s\n", m.Role, p.Name, p.Args)
			case llm.ToolResult:
				fmt.Printf("%s: %s\n", m.Role, p.Output)
			}
		}
	}
	// Output:
	// user: How do I dress in Bergen?
	// assistant calls weather {"city":"Bergen"}
	// tool: It rains in Bergen.
	// assistant: Take an umbrella.
}

// The events of a run are ranged over while it goes. Breaking out of the range
// would leave the run going.
func ExampleRun_Events() {
	agent := pawl.Agent{
		Tools: []tool.Tool{pawl.Tool("ping", "Ping.", func(context.Context, struct{}) (string, error) { return "pong", nil })},
		Model: says(scripted.Turn{ToolCalls: calls("ping", `{}`)}, scripted.Turn{Text: "It answers."}),
	}
	run, err := agent.Start(context.Background(), "Does it answer?", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			log.Fatal(err) // the engine failed; a failed run is an event
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			fmt.Println(e.Seq, e.Type(), d.Output)
		default:
			fmt.Println(e.Seq, e.Type())
		}
	}
	final, err := run.Wait()
	fmt.Println(final.Text(), err)
	// Output:
	// 1 run.started
	// 2 cycle.start
	// 3 budget.reserved
	// 4 model.requested
	// 5 model.response
	// 6 budget.committed
	// 7 tool_call
	// 8 policy.decision
	// 9 tool.started
	// 10 tool_result pong
	// 11 tool.results
	// 12 cycle.start
	// 13 budget.reserved
	// 14 model.requested
	// 15 model.response
	// 16 budget.committed
	// 17 run.terminated_by
	// 18 run.completed
	// It answers. <nil>
}

// A person decides about the calls of the tools that Approvals names. The model sees
// the rejection, and the run continues.
func ExampleAgent_ask() {
	type path struct {
		Path string `json:"path"`
	}
	remove := pawl.Tool("remove", "Remove a file.", func(_ context.Context, p path) (string, error) {
		return "removed " + p.Path, nil
	})
	agent := pawl.Agent{
		Tools: []tool.Tool{remove},
		Approvals: pawl.Approvals{
			Tools: []string{"remove"},
			Ask: func(_ context.Context, a pawl.Approval) (pawl.Decision, error) {
				fmt.Printf("may it call %s %s? no\n", a.Tool, a.Args)
				return pawl.Decision{Reason: "it is not finished"}, nil
			},
		},
		Model: says(
			scripted.Turn{ToolCalls: calls("remove", `{"path":"thesis.tex"}`)},
			scripted.Turn{Text: "I left it alone."},
		),
	}
	final, err := agent.Run(context.Background(), "Tidy up.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Text())
	// Output:
	// may it call remove {"path":"thesis.tex"}? no
	// I left it alone.
}

// Without Ask a run parks, and costs nothing until a decision arrives: today, or in
// another process next week.
func ExampleRun_Approve() {
	ctx := context.Background()
	agent := pawl.Agent{
		Tools:     []tool.Tool{pawl.Tool("deploy", "Deploy.", func(context.Context, struct{}) (string, error) { return "deployed", nil })},
		Approvals: pawl.Approvals{Tools: []string{"deploy"}},
		Model:     says(scripted.Turn{ToolCalls: calls("deploy", `{}`)}, scripted.Turn{Text: "It is out."}),
	}
	run, err := agent.Start(ctx, "Ship it.", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	parked, err := run.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parked.Status, parked.Parked.Reason, parked.Pending[0].Tool)

	if err := run.Approve(ctx, parked.Pending[0].CallID, "the tests are green"); err != nil {
		log.Fatal(err)
	}
	run, err = agent.Resume(ctx, run.ID(), pawl.Options{Journal: run.Journal()})
	if err != nil {
		log.Fatal(err)
	}
	final, err := run.Wait()
	fmt.Println(final.Status, final.Text(), err)
	// Output:
	// parked approval_required deploy
	// completed It is out. <nil>
}

// A limit stops a run. That is neither a success nor a failure, and finished work
// is kept: Continue goes on from it under a higher limit.
func ExampleAgent_Continue() {
	ctx := context.Background()
	step := pawl.Tool("step", "Do a step.", func(context.Context, struct{}) (string, error) { return "one step further", nil })
	agent := pawl.Agent{
		Tools:  []tool.Tool{step},
		Limits: pawl.Limits{MaxCycles: 2},
		Model:  says(scripted.Turn{ToolCalls: calls("step", `{}`)}, scripted.Turn{ToolCalls: calls("step", `{}`)}),
	}
	run, err := agent.Start(ctx, "Walk until you are there.", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stopped, err := run.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stopped.Status, stopped.Outcome.Reason, "after", stopped.Turns, "turns")

	agent.Limits.MaxCycles = 10
	agent.Model = says(scripted.Turn{Text: "I am there."})
	run, err = agent.Continue(ctx, run.ID(), "", pawl.Options{Journal: run.Journal()})
	if err != nil {
		log.Fatal(err)
	}
	final, err := run.Wait()
	fmt.Println(final.Status, final.Text(), len(final.Messages), err)
	// Output:
	// stopped maxCycles after 2 turns
	// completed I am there. 6 <nil>
}

// A budget in money stops a run as well; the cost is in the final state.
func ExampleLimits() {
	step := pawl.Tool("step", "Do a step.", func(context.Context, struct{}) (string, error) { return "done", nil })
	dear := scripted.Turn{ToolCalls: calls("step", `{}`), Usage: &llm.Usage{Output: 30_000}}
	agent := pawl.Agent{
		Tools:  []tool.Tool{step},
		Limits: pawl.Limits{USDPerRun: 0.50},
		Model:  says(dear, dear, dear), // USD 0.30 each
	}
	final, err := agent.Run(context.Background(), "Spend.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s by %s: USD %.2f\n", final.Status, final.Outcome.Limit, final.Cost.USD)
	fmt.Println(final.Outcome.NextSafeAction)
	// Output:
	// stopped by usd_per_run: USD 0.60
	// Check what the money was spent on; if it was worth it, continue the run with a higher usd_per_run.
}

// With a journal on disk a run outlives its process: any process that opens the journal
// continues it, and repeats nothing that was settled.
func ExampleAgent_Resume() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "journal.db")

	built := 0
	build := pawl.Tool("build", "Build.", func(context.Context, struct{}) (string, error) {
		built++
		return "built", nil
	})
	release := pawl.Tool("release", "Release.", func(context.Context, struct{}) (string, error) { return "released", nil })
	agent := pawl.Agent{
		Tools:     []tool.Tool{build, release},
		Approvals: pawl.Approvals{Tools: []string{"release"}},
		Model: says(
			scripted.Turn{ToolCalls: append(calls("build", `{}`), calls("release", `{}`)...)},
			scripted.Turn{Text: "Released."},
		),
	}

	// The first process builds, and has no Ask.
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := agent.Start(ctx, "Make a release.", pawl.Options{Journal: store})
	if err != nil {
		log.Fatal(err)
	}
	parked, err := run.Wait()
	fmt.Println(parked.Status, "built:", built, err)
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	// Another one has.
	store, err = sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	agent.Approvals.Ask = func(context.Context, pawl.Approval) (pawl.Decision, error) { return pawl.Decision{Approve: true}, nil }
	run, err = agent.Resume(ctx, run.ID(), pawl.Options{Journal: store})
	if err != nil {
		log.Fatal(err)
	}
	final, err := run.Wait()
	fmt.Println(final.Status, "built:", built, final.Text(), err)
	// Output:
	// parked built: 1 <nil>
	// completed built: 1 Released. <nil>
}

// Cancelling the context ends a run for good: what is in flight is stopped,
// every call is settled, and the outcome says so.
func ExampleAgent_Start_cancel() {
	ctx, cancel := context.WithCancel(context.Background())
	sleep := pawl.Tool("sleep", "Sleep.", func(ctx context.Context, _ struct{}) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	agent := pawl.Agent{
		Tools: []tool.Tool{sleep},
		Model: says(scripted.Turn{ToolCalls: calls("sleep", `{}`)}),
	}
	run, err := agent.Start(ctx, "Sleep for ever.", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	final, err := run.Wait()
	fmt.Println(final.Status, final.Outcome.Reason, err)
	// Output: cancelled cancelled <nil>
}

// Everything that is wrong with an agent is reported at once.
func ExampleAgent_Validate() {
	err := pawl.Agent{Approvals: pawl.Approvals{Tools: []string{"deploy"}}}.Validate()
	fmt.Println(err)
	problem, _ := errors.AsType[*pawl.InvalidAgentError](err)
	fmt.Println(problem.Field)
	// Output:
	// pawl: agent: Model: is missing
	// pawl: agent: Approvals.Tools: there is no tool "deploy"
	// Model
}

// An answer by schema: the provider is asked for it, and what comes is held to
// it before the run ends.
func ExampleSchemaOf() {
	type capital struct {
		City       string `json:"city"`
		Population int    `json:"population" jsonschema:"inhabitants of the city proper"`
	}
	schema, err := pawl.SchemaOf[capital]()
	if err != nil {
		log.Fatal(err)
	}
	a := pawl.Agent{Model: says(scripted.Turn{Text: `{"city": "Paris", "population": 2100000}`}), Schema: schema}
	state, err := a.Run(context.Background(), "What is the capital of France?")
	if err != nil {
		log.Fatal(err)
	}
	var answer capital
	if err := state.Decode(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.City, answer.Population)
	// Output: Paris 2100000
}

// A tool gets a secret in the place of its name. Neither the model nor the
// journal ever sees the value, also where a tool gives it away.
func ExampleSecret() {
	type login struct {
		Token string `json:"token"`
	}
	check := pawl.Tool("check", "Check a token.", func(_ context.Context, l login) (string, error) {
		return fmt.Sprintf("%s has %d characters", l.Token, len(l.Token)), nil
	})
	check.Labels = &event.Labels{}
	agent := pawl.Agent{
		Tools:   []tool.Tool{check},
		Secrets: []pawl.Secret{{Name: "API_TOKEN", Value: "s3cr3t-s3cr3t", Tools: []string{"check"}}},
		Model: says(
			scripted.Turn{ToolCalls: calls("check", `{"token":"${secret:API_TOKEN}"}`)},
			scripted.Turn{Text: "It is long enough."},
		),
	}
	final, err := agent.Run(context.Background(), "Is the token long enough?")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range final.Messages[2].Parts {
		if r, ok := p.(llm.ToolResult); ok {
			fmt.Println(r.Output)
		}
	}
	fmt.Println(final.Text())
	// Output:
	// ${secret:API_TOKEN} has 13 characters
	// It is long enough.
}

// A hook runs before each call of a tool, ahead of every rule. It may block the call or
// change its arguments; a hook that fails blocks the call.
func ExampleHook() {
	erase := pawl.Tool("erase", "Erase a directory.", func(_ context.Context, p struct {
		Dir string `json:"dir"`
	}) (string, error) {
		return p.Dir + " is gone.", nil
	})
	agent := pawl.Agent{
		Tools: []tool.Tool{erase},
		Hooks: []pawl.Hook{{
			Stage: event.HookBeforeTool, Name: "keep-home", Tools: []string{"erase"},
			Run: func(_ context.Context, c pawl.HookCall) (pawl.HookAnswer, error) {
				if strings.Contains(string(c.Args), "/home") {
					return pawl.HookAnswer{Decision: event.HookBlock, Reason: "nobody's home is erased"}, nil
				}
				return pawl.HookAnswer{}, nil
			},
		}},
		Model: says(
			scripted.Turn{ToolCalls: calls("erase", `{"dir":"/home/ann"}`)},
			scripted.Turn{Text: "I left it alone."},
		),
	}
	run, err := agent.Start(context.Background(), "Make room.", pawl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range run.Events() {
		if err != nil {
			log.Fatal(err)
		}
		if d, ok := e.Data.(event.ToolResult); ok {
			fmt.Println(d.Output)
		}
	}
	// Output: {"error":"the hook keep-home did not let this call run: nobody's home is erased","type":"blocked_by_hook"}
}
