package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal/memory"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ending is one way for a run to end, played by the binary from an agent file and a
// script, with the output for its owner.
type ending struct {
	name   string
	reason event.Reason
	exit   int
	// file is added to the agent file, or what the judge of a workflow says; script
	// is what the model says, and a run without one calls a provider that takes money.
	file, script string
	// workflow is a workflow file in the place of the agent file.
	workflow string
	args     []string
	// meanwhile happens while the run goes.
	meanwhile func(p project)
}

const (
	goesOn = "- {text: Looking., tool_calls: [{name: fs.read, arguments: {path: a.txt}}]}\n" +
		"- {text: And again., tool_calls: [{name: shell.exec, arguments: {command: echo hi}}]}\n" +
		"- {text: And more., tool_calls: [{name: shell.exec, arguments: {command: echo ho}}]}\n" +
		"- text: done\n"
	gated  = "tools: {allow: [shell.exec], approvals: {shell.exec: always}}\n"
	denied = "tools: {allow: [shell.exec], rules: [{deny: shell.exec, reason: no commands here}]}\n"
	judged = "apiVersion: pawl/v1\nname: judged\nagents:\n  a: {description: Works., model: scripted/script.yaml, tools: []}\n" +
		"  j:\n    {description: Judges., model: scripted/judge.yaml, tools: [], resultSchema: {type: object, required: [done], " +
		"properties: {done: {type: boolean}, verdict: {type: string}, reason: {type: string}}}}\n" +
		"steps:\n  - {id: work, agent: a, instructions: Work., loop: {maxIterations: 2, untilAgent: j, judge_failures_max: 1"
)

// endings are all ways to end that there are so far.
var endings = []ending{
	{name: "the model's answer", reason: event.ReasonFinalAnswer, script: goesOn},
	{name: "a condition", reason: event.ReasonConditionMet, script: goesOn,
		file: "iteration: {termination_conditions: [{kind: text-includes, text: again}]}\n"},
	{name: "a condition on the budget", reason: event.ReasonConditionMet,
		file: "iteration: {termination_conditions: [{kind: budget-exhausted}]}\n", args: []string{"--budget", "0.03"}},
	{name: "the cycle cap", reason: event.ReasonMaxCycles, exit: 3, script: goesOn, args: []string{"--max-cycles", "2"}},
	{name: "the cycle cap of an iteration", reason: event.ReasonMaxCycles, script: goesOn, file: "iteration: {max_cycles: 2}\n"},
	{name: "the cycle cap as a failure", reason: event.ReasonMaxCycles, exit: 1, script: goesOn, file: "max_cycles: 2\non_limit: fail\n"},

	{name: "USD of the run", reason: "budget:usd_per_run", exit: 3, file: "on_no_tool_call: nudge\nmax_nudges: none\n", args: []string{"--budget", "0.03"}},
	{name: "total cost", reason: "budget:max_total_cost", exit: 3, file: "on_no_tool_call: nudge\nmax_nudges: none\nbudgets: {max_total_cost: 0.03}\n"},
	{name: "model turns", reason: "budget:max_model_turns", exit: 3, script: goesOn, file: "budgets: {max_model_turns: 2}\n"},
	{name: "tool calls", reason: "budget:max_tool_calls", exit: 3, script: goesOn, file: "budgets: {max_tool_calls: 1}\n"},
	{name: "input tokens", reason: "budget:max_input_tokens", exit: 3, script: goesOn, file: "budgets: {max_input_tokens: 20}\n"},
	{name: "output tokens", reason: "budget:max_output_tokens", exit: 3, script: goesOn, file: "budgets: {max_output_tokens: 12}\n"},
	{name: "wall time", reason: "budget:max_wall_time_seconds", exit: 3, script: shellTurn("sleep 20"), args: []string{"--timeout", "300ms"}},
	{name: "time without progress", reason: "budget:max_no_progress_seconds", exit: 3, script: shellTurn("sleep 20") + goesOn,
		file: "budgets: {max_no_progress_seconds: 0.3}\n"},
	{name: "the size of a request", reason: "budget:max_context_tokens_per_request", exit: 3, script: goesOn,
		file: "budgets: {max_context_tokens_per_request: 20}\n"},

	{name: "no answer and no call", reason: event.ReasonNoAnswerOrCall, exit: 3, script: "- text: hm\n", file: "on_no_tool_call: stop\n"},
	{name: "nudged too often", reason: event.ReasonNoAnswerOrCall, exit: 3, script: "- text: hm\n- text: well\n", file: "on_no_tool_call: nudge\nmax_nudges: 1\n"},
	{name: "an empty answer", reason: event.ReasonEmptyResponse, exit: 1, script: "- text: ' '\n- text: ' '\n"},
	{name: "cut off again and again", reason: event.ReasonTruncated, exit: 3, script: strings.Repeat("- {text: so, finish: length}\n", 4)},
	{name: "a refusal", reason: event.ReasonRefused, exit: 1, script: "- {text: I will not., finish: refusal}\n"},
	{name: "paused again and again", reason: event.ReasonModelError, exit: 1, script: strings.Repeat("- {text: so, finish: pause}\n", 6)},
	{name: "an error of the model", reason: event.ReasonModelError, exit: 1, script: "- error: {status: 401, class: auth}\n"},
	{name: "too long for the model", reason: event.ReasonModelError, exit: 1, script: "- error: {status: 400, class: context_overflow}\n"},
	{name: "the same again and again", reason: event.ReasonStuck, exit: 3, script: strings.Repeat(shellTurn("echo hi"), 6)},
	{name: "too many failures in a row", reason: event.ReasonRepeatedFailure, exit: 1, file: "failure_threshold: 2\n",
		script: "- tool_calls: [{name: fs.read, arguments: {path: nowhere}}, {name: fs.read, arguments: {path: ../outside}}]\n"},

	{name: "a failed step", reason: event.ReasonStepFailed, exit: 1, script: "- error: {status: 401, class: auth}\n",
		workflow: "name: fails\nagents: {a: {description: Works., model: scripted/script.yaml}}\nsteps: [{id: work, agent: a, instructions: Work.}]\n"},
	{name: "a condition that cannot be evaluated", reason: event.ReasonConditionError, exit: 1, script: "- text: many\n",
		workflow: "name: counts\nagents: {a: {description: Works., model: scripted/script.yaml}}\nsteps:\n- {id: work, agent: a, instructions: Work.}\n" +
			"- {id: more, agent: a, instructions: Work., dependsOn: [work], condition: 'int(steps.work.content) > 1'}\n"},
	{name: "a judge who gives no verdict", reason: event.ReasonJudgeUnavailable, exit: 1, script: "- text: tried\n",
		file: "- text: hm\n- text: hm\n", workflow: judged + "}}\n"},
	{name: "a judge who says impossible", reason: event.ReasonImpossible, exit: 1, script: "- text: tried\n",
		file:     "- tool_calls: [{name: submit_result, arguments: {done: false, verdict: impossible, reason: there is no such file}}]\n",
		workflow: judged + "}}\n"},
	{name: "the cap of a loop", reason: event.ReasonMaxIterations, exit: 3, script: "- text: tried\n- text: tried\n",
		file:     strings.Repeat("- tool_calls: [{name: submit_result, arguments: {done: false}}]\n", 2),
		workflow: judged + ", on_limit: stopped}}\n"},

	{name: "denied", reason: event.ReasonPolicyDenied, exit: 1, file: denied + "on_denied: stop\n", script: shellTurn("echo hi")},
	{name: "rejected", reason: event.ReasonRejected, exit: 1, file: gated + "on_rejected: stop\n", script: shellTurn("echo hi"), args: []string{"--approve", "deny"}},
	{name: "the workspace is gone", reason: event.ReasonToolUnavailable, exit: 1, args: []string{"--workspace", "work"},
		script: shellTurn(`touch begun; while [ -e begun ]; do sleep 0.01; done`) +
			"- tool_calls: [{name: fs.read, arguments: {path: a.txt}}]\n- tool_calls: [{name: fs.read, arguments: {path: b.txt}}]\n",
		meanwhile: func(p project) {
			p.eventually("the run works", p.exists("work/begun"))
			// The workspace goes before the file that the command waits for.
			work, gone := filepath.Join(p.dir, "work"), filepath.Join(p.dir, "gone")
			if err := errors.Join(os.Rename(work, gone), os.RemoveAll(gone)); err != nil {
				p.t.Fatal(err)
			}
		}},
	{name: "cancelled", reason: event.ReasonCancelled, exit: 130, script: shellTurn("touch begun; sleep 20"),
		meanwhile: func(p project) {
			p.eventually("the run works", p.exists("begun"))
			p.exits(0, "runs", "cancel", p.newest())
		}},
}

// Every reason of the closed list, reached by the binary: the output for the owner, the
// output for a script, and the exit code.
//
// rows: ALDO-36, HAR-9..13, HAR-20, HAR-22, HAR-26, HAR-27, HAR-30, HAR-41, HAR-42, HAR-44..47, HAR-51, HAR-77, HAR-78, HAR-81..84
func TestEveryReasonIsReachedAndSaysWhatToDo(t *testing.T) {
	var mu sync.Mutex
	told := map[string]string{}
	t.Run("all", func(t *testing.T) {
		for _, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				o := e.play(t)
				mu.Lock()
				defer mu.Unlock()
				told[e.name] = describeEnding(e.exit, o)
			})
		}
	})
	if t.Failed() {
		return
	}
	var all strings.Builder
	for _, e := range endings {
		fmt.Fprintf(&all, "-- %s --\n%s", e.name, told[e.name])
	}
	fmt.Fprintf(&all, "-- a defect --\n%s", describeEnding(exitFailed, broken(t)))
	golden.File(t, filepath.Join("testdata", "endings.golden"), all.String(), *update)
}

// A reason that is added to the list, and a limit that is added to the
// settings, needs a way to be reached above.
func TestNoReasonIsForgotten(t *testing.T) {
	reached := map[string]bool{
		string(event.ReasonInternal): true, // by a broken machine, no file brings it about
		// By a run that is never made: what it was to do fails in the one above.
		string(event.ReasonMaxDepth): true,
		// By a token of a server, in TestServersOfAJournalShareATenantsBudget.
		string(event.ReasonTenantBudget): true,
		// By a repository that a server cannot clone, in TestRunWhoseCloneFailsEnds.
		string(event.ReasonNoWorkspace): true,
		// By an iteration of a refinement loop, in TestAFailedIterationEndsTheLoopUnlessItMayGoOn.
		string(event.ReasonIterationFailed): true,
	}
	for _, e := range endings {
		reached[string(e.reason)] = true
	}
	wanted := declaredReasons(t)
	bounds := map[string]bool{ // what shapes a run and ends none
		"max_cycles": true, "max_parallel_tool_calls": true, "max_tool_result_chars": true,
		"max_retries_per_model_call": true, "max_retries_per_tool_call": true,
	}
	for _, setting := range budget.Settings() {
		if !bounds[setting] {
			wanted = append(wanted, string(event.BudgetReason(setting)))
		}
	}
	for _, reason := range wanted {
		if !reached[reason] {
			t.Errorf("no ending reaches %s", reason)
		}
	}
}

// declaredReasons are the constants of the type, read from its source.
func declaredReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "event", "outcome.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Reason" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, text)
		}
		return true
	})
	if len(reasons) < 16 {
		t.Fatalf("only %v were found", reasons)
	}
	return reasons
}

func (e ending) play(t *testing.T) event.Outcome {
	agent := "identity: {name: ending}\nmodel_policy: {primary: scripted/script.yaml}\n"
	if e.script == "" {
		agent = "identity: {name: ending}\nmodel_policy: {primary: openai-chat/priced}\n"
	}
	if !strings.Contains(e.file, "tools:") {
		agent += "tools: {allow: [shell.exec, fs.read]}\n"
	}
	agent += e.file
	if e.workflow != "" {
		agent = e.workflow
	}
	p := newProject(t, map[string]string{"agent.yaml": agent, "script.yaml": e.script, "judge.yaml": e.file, "a.txt": "content"})
	if err := os.Mkdir(filepath.Join(p.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "agent.yaml", "go", "--json", "--no-stream"}, e.args...)
	if e.script == "" {
		p.write("config.yaml", dear(t))
		args = append(args, "--config", "config.yaml")
	}
	run := p.startWith([]string{"PAWL_TEST_KEY=secret"}, args...)
	if e.meanwhile != nil {
		e.meanwhile(p)
	}
	f := run.wait()
	if f.code != e.exit {
		t.Fatalf("exit code %d, want %d; %s", f.code, e.exit, f.err)
	}
	events := p.events(f.out)
	root := events[0].Run
	o := p.outcome(slices.DeleteFunc(events, func(ev event.Event) bool { return ev.Run != root }))
	if o.Reason != e.reason {
		t.Errorf("ended with %s, want %s: %+v", o.Reason, e.reason, o.Error)
	}
	return o
}

// dear is the config of a provider that answers every call with a text, for
// which it takes a cent.
func dear(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"I am at it."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1000}}`)
	}))
	t.Cleanup(s.Close)
	return fmt.Sprintf("providers: {openai-chat: {base_url: %q, api_key_env: PAWL_TEST_KEY}}\nmodels: {openai-chat/priced: {price: {input: 1, output: 10}}}\n", s.URL)
}

// describeEnding is what an ending looks like from outside, without what
// differs from run to run.
func describeEnding(exit int, o event.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit %d: %s by %s, ok %t, completed %t\n", exit, o.Status, reason(o), o.OK, o.Completed)
	if o.Limit != "" {
		fmt.Fprintf(&b, "limit: %s\n", o.Limit)
	}
	if o.Error != nil {
		fmt.Fprintf(&b, "error: %s\n", o.Error.Class)
	}
	if o.NextSafeAction != "" {
		fmt.Fprintf(&b, "next: %s\n", o.NextSafeAction)
	}
	return b.String()
}

// defect is a machine that breaks when it is asked what to do.
type defect struct{}

func (defect) Apply(*event.Event) error { return nil }
func (defect) Next() []machine.Action   { panic("a defect") }
func (defect) State() machine.State     { return machine.State{Phase: machine.Running} }

// broken is the outcome of a run whose machine has a defect.
func broken(t *testing.T) event.Outcome {
	t.Helper()
	e := engine.New(memory.New(nil), func(string) (machine.Machine, error) { return defect{}, nil }, engine.Options{})
	defer func() { _ = e.Close() }()
	run, err := e.Start(t.Context(), event.RunStarted{Vocabulary: event.Version}, perform.Env{})
	if err != nil {
		t.Fatal(err)
	}
	state, err := run.Wait(context.Background())
	if _, panicked := errors.AsType[*engine.PanicError](err); !panicked || state.Outcome == nil || exitOf(state.Outcome) != exitFailed {
		t.Fatalf("%+v, %v", state, err)
	}
	return *state.Outcome
}
