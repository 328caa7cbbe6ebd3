package launch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// program returns a script of /bin/sh that acts as another agent.
func program(t *testing.T, text string) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "other-agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// byRunner prepares a task for a runner, in an agent file with more keys.
func byRunner(t *testing.T, r spec.Runner, more string, o launch.Options) (event.RunStarted, perform.Env, error) {
	t.Helper()
	a, err := spec.ReadAgent(file(t, "identity: {name: other}\nloop: {runner: {command: [x]}}\nmodel_policy: {}\n"+more), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Loop.Runner = &r
	text, err := a.Text()
	if err != nil {
		return event.RunStarted{}, perform.Env{}, err
	}
	return launch.Agent(launch.File{Path: "other.yaml", Text: text}, "Fix it.", o)
}

func types(events []event.Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.Type()))
	}
	return all
}

func find[D event.Data](t *testing.T, events []event.Event) (d D) {
	t.Helper()
	for _, e := range events {
		if found, is := e.Data.(D); is {
			return found
		}
	}
	t.Fatalf("there is no %T among %v", d, types(events))
	return d
}

// A run of another agent consists of one decision and one command, whose intent is on
// disk before its program starts. The first event records which limits apply.
// rows: RON-5
func TestARunnerIsARunOfOneCommandThatAnotherAgentDoes(t *testing.T) {
	o := options(t)
	o.Getenv = func(name string) string { return map[string]string{"OTHER_API_KEY": "sesame-open-the-door"}[name] }
	r := spec.Runner{Command: []string{program(t, `echo "$OTHER_API_KEY $1"; pwd; echo '{"done":true,"text":"fixed"}' > "$PAWL_RESULT_FILE"`)}, Env: []string{"OTHER_API_KEY"}}
	started, env, err := byRunner(t, r, "", o)
	if err != nil {
		t.Fatal(err)
	}
	id, events := run(t, memory.New(nil), started, env)
	want := []string{"run.started", "budget.reserved", "policy.decision", "command.started", "command.finished", "budget.committed", "run.terminated_by", "run.completed"}
	if !slices.Equal(types(events), want) {
		t.Errorf("run %s: %v", id, types(events))
	}
	if s := find[event.RunStarted](t, events); s.Governance != "external" || s.Kind != "Process" || s.Workspace != o.Workspace {
		t.Errorf("it starts as %+v", s)
	}
	if d := find[event.PolicyDecision](t, events); d.Rule != "runner" || d.Decision != event.DecisionAllow || !d.Facts.Unsandboxed {
		t.Errorf("the decision is %+v", d)
	}
	if d := find[event.CommandFinished](t, events); d.Output != "${secret:OTHER_API_KEY} Fix it.\n"+o.Workspace+"\n" {
		t.Errorf("it prints %q", d.Output)
	}
	if got := outcome(t, events); !got.OK || got.FinalOutput != "fixed" || strings.TrimSpace(string(got.Result)) != `{"done":true,"text":"fixed"}` {
		t.Errorf("it ends as %+v", got)
	}
}

func TestWhatThePolicyDeniesNoRunnerDoes(t *testing.T) {
	r := spec.Runner{Command: []string{program(t, `echo ran`)}}
	started, env, err := byRunner(t, r, "tools: {rules: [{deny: shell.exec, command: "+r.Command[0]+"}]}\n", options(t))
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, memory.New(nil), started, env)
	if got := outcome(t, events); got.Reason != event.ReasonPolicyDenied || slices.Contains(types(events), "command.started") {
		t.Errorf("it ends as %+v after %v", got, types(events))
	}
	if _, _, err := byRunner(t, r, "tools: {permissions: {network: none}}\n", options(t)); err == nil || !strings.Contains(err.Error(), "outside every sandbox") {
		t.Errorf("a network that nobody holds: %v", err)
	}
}

// A plan's step with a runner is a child with its own journal. Its reported cost counts
// in the tree, and nothing starts after a cap is passed.
func TestWhatARunnerCostsCountsInTheRunAbove(t *testing.T) {
	o, store := options(t), memory.New(nil)
	r := spec.Runner{Command: []string{program(t, `echo '{"type":"result","result":"One.","is_error":false,"total_cost_usd":0.4,"usage":{"input_tokens":10,"output_tokens":2}}'`)}}
	child := assembly.Agent{Begin: func(string, event.InputReceived) (event.RunStarted, perform.Env, error) { return byRunner(t, r, "", o) }}
	step := func(id string, on ...string) plan.Step {
		return plan.Step{ID: id, DependsOn: on, Agent: &plan.Agent{Name: "other", Instructions: "go on"}}
	}
	started, err := flow.Start(flow.Config{
		Plan: plan.Plan{Steps: []plan.Step{step("one"), step("two", "one"), step("three", "two")}}, Limits: budget.Limits{USDPerRun: 0.5},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, store, started, perform.Env{Children: map[string]perform.Child{"other": child.Child()}})
	got := outcome(t, events)
	if got.Cost == nil || got.Cost.USD != 0.8 || got.Usage.Input != 20 || got.OK {
		t.Errorf("it ends as %+v, %+v", got, got.Cost)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != 4 {
		t.Fatalf("there are %d runs, %v", len(rows), err)
	}
	for _, row := range rows {
		if _, err := journal.Verify(t.Context(), store, row.ID, ""); err != nil {
			t.Error(err)
		}
	}
}

// dying is a store that rejects everything once a command is to be settled.
type dying struct{ journal.Store }

func (s dying) Append(ctx context.Context, b journal.Batch) (int64, error) {
	if slices.ContainsFunc(b.Records, func(r journal.Record) bool { return r.Type == "command.finished" }) {
		return 0, errors.New("the process dies")
	}
	return s.Store.Append(ctx, b)
}

// If the process dies during the command, the run resumes by the effect class in its
// file: the program runs again, or the command is in doubt.
func TestARunnerThatWasCutOffIsInDoubtOrRunsAgain(t *testing.T) {
	for effect, want := range map[string]string{"": "in_doubt", "idempotent": ""} {
		r := spec.Runner{Command: []string{program(t, `echo ran >> ran; wc -l < ran`)}, Effect: effect}
		o, store := options(t), memory.New(nil)
		started, env, err := byRunner(t, r, "", o)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(dying{store}, versions.Make, engine.Options{Owner: "first", LeaseTTL: time.Second})
		first, err := e.Start(t.Context(), started, env)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Wait(t.Context()); err == nil {
			t.Fatal("it did not die")
		}
		_ = e.Close()
		e = engine.New(store, versions.Make, engine.Options{Owner: "second", LeaseTTL: time.Second})
		var again *engine.Run
		for again == nil {
			again, err = e.Resume(t.Context(), first.ID, func(s event.RunStarted) (perform.Env, error) { return kinds.Resume(s, launch.Options{}) })
			if _, held := errors.AsType[*journal.HeldError](err); err != nil && !held {
				t.Fatal(err)
			}
		}
		got := outcome(t, drain(t, again))
		class := ""
		if got.Error != nil {
			class = got.Error.Class
		}
		if class != want || want == "" && got.FinalOutput != "2\n" {
			t.Errorf("%q: it ends as %+v", effect, got)
		}
		_ = e.Close()
	}
}

// loopOf writes the file of a loop with a runner.
func loopOf(t *testing.T, script, more string) string {
	t.Helper()
	return file(t, "identity: {name: refine}\nmodel_policy: {}\nloop: {loopEnabled: true, maxIterations: 5, runner: {command: ["+program(t, script)+"]"+more+"}\n")
}

// rows: RON-5, RON-6
func TestALoopStartsAFreshProcessForEachIteration(t *testing.T) {
	path := loopOf(t, `echo "$$" >> pids; printf '%s' "$1" > "told.$(wc -l < pids)"
test "$(wc -l < pids)" -lt 2 && echo "not yet" || echo "all green"`, "}, loopCriteria: {type: regex, value: ALL GREEN}")
	o, store := options(t), memory.New(nil)
	started, env, err := launch.Agent(read(t, path), "Make it green.", o)
	if err != nil {
		t.Fatal(err)
	}
	id, events := run(t, store, started, env)
	got := outcome(t, events)
	if !got.OK || got.Reason != event.ReasonConditionMet || got.Kind != "regex" || got.Iterations != 2 || got.LastOutput != "all green\n" {
		t.Errorf("it ends as %+v", got)
	}
	pids, _ := os.ReadFile(filepath.Join(o.Workspace, "pids"))
	if p := strings.Fields(string(pids)); len(p) != 2 || p[0] == p[1] {
		t.Errorf("the processes are %q", p)
	}
	first, _ := os.ReadFile(filepath.Join(o.Workspace, "told.1"))
	second, _ := os.ReadFile(filepath.Join(o.Workspace, "told.2"))
	if string(first) != "Make it green." || !strings.HasPrefix(string(second), "Make it green.\n\n## Progress Log\n") || !strings.Contains(string(second), "not yet") ||
		!strings.Contains(string(second), "Iteration 2 of 5") {
		t.Errorf("they are told %q, then %q", first, second)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Root: id})
	if err != nil || len(rows) != 3 {
		t.Fatalf("the tree has %d runs, %v", len(rows), err)
	}
	records, err := store.Tree(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	intents := map[string]string{} // the child's events come after its intent
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ChildStarted:
			intents[d.Child] = "intended"
		case event.RunStarted:
			if e.Run != id && (intents[e.Run] != "intended" || d.Governance != "external") {
				t.Errorf("run %s is %q and starts as %+v", e.Run, intents[e.Run], d)
			}
		}
	}
}

// A provider's limit parks the loop until the limit ends. The same iteration continues
// when the loop resumes, so none is lost.
func TestAProviderLimitParksTheLoopAndBurnsNoIteration(t *testing.T) {
	path := loopOf(t, `echo x >> tries
test "$(wc -l < tries)" = 1 && { echo 'usage limit reached|4102444800' >&2; exit 1; }; echo "all green"`, "}, loopCriteria: {type: regex, value: green}")
	o, store := options(t), memory.New(nil)
	started, env, err := launch.Agent(read(t, path), "Make it green.", o)
	if err != nil {
		t.Fatal(err)
	}
	id, events := run(t, store, started, env)
	if parked := find[event.RunParked](t, events); parked.Reason != event.ParkPaused || parked.Until == nil || parked.Until.Unix() != 4102444800 ||
		!strings.Contains(parked.Detail, "usage limit reached") {
		t.Fatalf("it is parked as %+v", parked)
	}
	e := engine.New(store, versions.Make, engine.Options{})
	defer func() { _ = e.Close() }()
	again, err := e.Resume(t.Context(), id, func(s event.RunStarted) (perform.Env, error) { return kinds.Resume(s, launch.Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, drain(t, again)); !got.OK || got.Iterations != 1 {
		t.Errorf("it ends as %+v", got)
	}
}

// If the loop of a file is off, its agent or runner runs once.
func TestARunnerRunsOnceWhereTheLoopIsOff(t *testing.T) {
	path := file(t, "identity: {name: once}\nmodel_policy: {}\nloop: {runner: {command: ["+program(t, "echo done")+"]}}\n")
	started, env, err := launch.Agent(read(t, path), "Do it.", options(t))
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, memory.New(nil), started, env)
	if got := outcome(t, events); !got.OK || got.FinalOutput != "done\n" || slices.Contains(types(events), "child.started") {
		t.Errorf("it ends as %+v after %v", got, types(events))
	}
}

func TestWhatMeansNothingToARunnerIsRefused(t *testing.T) {
	const loop = "identity: {name: other}\nmodel_policy: {}\nloop: {loopEnabled: true, runner: {command: [x]}"
	for want, text := range map[string]string{
		"prompt.system":            loop + "}\nprompt: {system: Be good.}",
		"tools.allow":              loop + "}\ntools: {allow: []}",
		"hooks":                    loop + "}\nhooks: {after_run: [{command: cat}]}",
		"iteration":                loop + "}\niteration: {max_cycles: 3, termination_conditions: [{kind: text-includes, text: x}]}",
		"stop_when[0].judge.model": loop + ", stop_when: [{judge: {prompt: Is it done?}}]}",
		"loop.runner.command":      "identity: {name: other}\nloop: {loopEnabled: true, runner: {prompt: stdin}}",
		"loop.runner.prompt":       "identity: {name: other}\nloop: {loopEnabled: true, runner: {command: [x], prompt: shout}}",
	} {
		_, _, err := launch.Agent(read(t, file(t, text)), "Do it.", options(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, _, err := launch.Agent(launch.File{Path: "sent.yaml", Text: []byte(loop + "}\n"), Sent: true}, "Do it.", options(t))
	if err == nil || !strings.Contains(err.Error(), "loop.runner: starts a program of this machine") {
		t.Errorf("a file that was sent: %v", err)
	}
}

// Each output restarts the idle timer. A program that is silent for too long is
// stopped, even if it has closed its output, and the iteration fails.
func TestARunnerThatSaysNothingIsStopped(t *testing.T) {
	path := loopOf(t, `for i in 1 2 3; do echo $i; sleep 0.9; done; exec >&- 2>&-; sleep 60`, ", idle_timeout: 2s}")
	started, env, err := launch.Agent(read(t, path), "Make it green.", options(t))
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(nil)
	id, events := run(t, store, started, env)
	if got := outcome(t, events); got.OK || got.Reason != event.ReasonIterationFailed || got.Error == nil || !strings.Contains(got.Error.Message, "had printed nothing for 2s") {
		t.Errorf("it ends as %+v", got)
	}
	records, err := store.Tree(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Type == "command.finished" && !strings.Contains(string(r.Body), `"output":"1\n2\n3\n"`) {
			t.Errorf("it printed %s", r.Body)
		}
	}
}
