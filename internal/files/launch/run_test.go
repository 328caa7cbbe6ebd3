package launch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// recorder records the requests that a run's model received.
type recorder struct{ requests []llm.Request }

func (r *recorder) wrap(env perform.Env) perform.Env {
	open := env.Model
	env.Model = func(target string) (llm.Model, string, error) {
		m, name, err := open(target)
		return recorded{m, r}, name, err
	}
	return env
}

type recorded struct {
	llm.Model
	r *recorder
}

func (m recorded) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	kept := *req
	kept.Messages = slices.Clone(req.Messages)
	m.r.requests = append(m.r.requests, kept)
	return m.Model.Generate(ctx, req)
}

// run drives a launched run to its end and returns its events.
func run(t *testing.T, store journal.Store, started event.RunStarted, env perform.Env) (string, []event.Event) {
	t.Helper()
	e := engine.New(store, versions.Make, engine.Options{Now: ticking(started)})
	defer func() { _ = e.Close() }()
	r, err := e.Start(t.Context(), started, env)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID, drain(t, r)
}

// ticking returns the clock for a run whose file limits the wall time: it advances by a
// second at each reading. Other runs use the default clock.
func ticking(started event.RunStarted) func() time.Time {
	if !strings.Contains(started.Spec, "max_wall_time_seconds") {
		return nil
	}
	var looks atomic.Int64
	begin := time.Now()
	return func() time.Time { return begin.Add(time.Duration(looks.Add(1)) * time.Second) }
}

func drain(t *testing.T, r *engine.Run) []event.Event {
	t.Helper()
	var events []event.Event
	for ev, err := range r.Events(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return events
}

func outcome(t *testing.T, events []event.Event) event.Outcome {
	t.Helper()
	done, ok := events[len(events)-1].Data.(event.RunCompleted)
	if !ok {
		t.Fatalf("the run did not end: %s", events[len(events)-1].Type())
	}
	return done.Outcome
}

// anyCycles is for runs that end by time.
const anyCycles = -1

// The test checks which limit ends the run for each setting of a file, with a model
// that never finishes.
// rows: ALDO-4, ALDO-7, HAR-9..11, HAR-13, HAR-41, HAR-42, HAR-44..46, HAR-51
func TestSettingsOfTheFileEndTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		reason event.Reason
		cycles int
		ok     bool
	}{
		"no limit in the way":        {"", event.ReasonFinalAnswer, 3, true},
		"max_cycles":                 {"max_cycles: 2", event.ReasonMaxCycles, 2, false},
		"iteration.max_cycles":       {"iteration: {max_cycles: 2}", event.ReasonMaxCycles, 2, true},
		"on_limit":                   {"max_cycles: 2\non_limit: ok", event.ReasonMaxCycles, 2, true},
		"max_model_turns":            {"budgets: {max_model_turns: 1}", "budget:max_model_turns", 1, false},
		"max_tool_calls":             {"budgets: {max_tool_calls: 1}", "budget:max_tool_calls", 2, false},
		"max_input_tokens":           {"budgets: {max_input_tokens: 250}", "budget:max_input_tokens", 0, false},
		"max_output_tokens":          {"budgets: {max_output_tokens: 10}", "budget:max_output_tokens", 1, false},
		"max_wall_time_seconds":      {"budgets: {max_wall_time_seconds: 7}", "budget:max_wall_time_seconds", anyCycles, false},
		"a condition on text":        {"iteration: {termination_conditions: [{kind: text-includes, text: Again}]}", event.ReasonConditionMet, 2, true},
		"a condition on a result":    {"iteration: {termination_conditions: [{kind: tool-result, tool: fs.glob, match: {contains: a.txt}}]}", event.ReasonConditionMet, 2, true},
		"a condition that is no hit": {"iteration: {max_cycles: 2, termination_conditions: [{kind: text-includes, text: again}]}", event.ReasonMaxCycles, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			if err := os.WriteFile(filepath.Join(o.Workspace, "a.txt"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			started, _, env := start(t, file(t, c.file), o)
			_, events := run(t, memory.New(nil), started, env)
			got := outcome(t, events)
			if got.Reason != c.reason || c.cycles != anyCycles && got.Cycles != c.cycles || got.OK != c.ok {
				t.Errorf("ended with %s after %d cycles, ok %t; want %s after %d, ok %t (%+v)",
					got.Reason, got.Cycles, got.OK, c.reason, c.cycles, c.ok, got.Error)
			}
			if strings.HasPrefix(string(c.reason), "budget:") &&
				(got.Status != event.StatusStopped || got.Completed || got.NextSafeAction == "") {
				t.Errorf("a budget gave %+v", got)
			}
		})
	}
}

// rows: ALDO-56
func TestApprovalsOfTheFileDecideWhoIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		parked bool
	}{
		"not named, read-only": {"", false},
		"gated":                {"tools: {approvals: {fs.list: always}}", true},
		"named and gated":      {"tools: {allow: [fs.list, fs.glob], approvals: {fs.glob: always}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			started, _, env := start(t, file(t, c.file), options(t))
			_, events := run(t, memory.New(nil), started, env)
			if _, parked := events[len(events)-1].Data.(event.RunParked); parked != c.parked {
				t.Errorf("ended with %s", events[len(events)-1].Type())
			}
		})
	}
}

func TestNeverAskToolRunsWithoutBeingNamed(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "w.yaml")
	if err := os.WriteFile(script, []byte("- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: hi}}]\n- text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, parked := range map[string]bool{"": true, "tools: {approvals: {fs.write: never}}": false} {
		o := options(t)
		o.Model = "scripted/" + script
		started, _, env := start(t, file(t, text), o)
		_, events := run(t, memory.New(nil), started, env)
		if _, got := events[len(events)-1].Data.(event.RunParked); got != parked {
			t.Errorf("%q ended with %s", text, events[len(events)-1].Type())
		}
	}
}

func TestRunIsResumedThoughItsFilesAreGone(t *testing.T) {
	dir := t.TempDir()
	agentFile, prompt := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "p.md")
	script, err := os.ReadFile("testdata/scripts/steps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		agentFile: "identity: {name: x}\nmodel_policy: {primary: scripted/s.yaml}\nprompt: {system_file: p.md}\ntools: {allow: [fs.list, fs.glob], approvals: {fs.list: always}}\n",
		prompt:    "You look.", filepath.Join(dir, "s.yaml"): string(script),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started, _, env := start(t, agentFile, options(t))
	store := memory.New(nil)
	id, _ := run(t, store, started, env)
	for _, path := range []string{agentFile, prompt} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(store, versions.Make, engine.Options{})
	defer func() { _ = e.Close() }()
	r, err := e.Resume(t.Context(), id, func(s event.RunStarted) (perform.Env, error) {
		env, err := launch.Environment(s, launch.Options{})
		if _, ok := env.Tools.Lookup("shell.exec"); ok {
			t.Error("a tool that the file does not allow came with the resumption")
		}
		env.Ask = func(_ context.Context, p event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalApproved, Approver: "test"}, nil
		}
		return env, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, drain(t, r)); got.Reason != event.ReasonFinalAnswer {
		t.Errorf("ended with %+v", got)
	}
}

// rows: HAR-24
func TestAToolThatTheRunMayNotUseIsNotInTheModelsView(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"all that is allowed":       {"tools: {allow: [fs.glob, fs.list, fs.write]}", []string{"fs.glob", "fs.list", "fs.write", "result.read"}},
		"a rule denies every call":  {"tools: {allow: [fs.glob, fs.list, fs.write], rules: [{deny: fs.list}]}", []string{"fs.glob", "fs.write", "result.read"}},
		"a rule denies single ones": {"tools: {allow: [fs.glob, fs.list], rules: [{deny: fs.list, path: secret/**}]}", []string{"fs.glob", "fs.list", "result.read"}},
		"a run that only plans":     {"tools: {allow: [fs.glob, fs.write], mode: plan}", []string{"fs.glob", "result.read"}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent recorder
			started, _, env := start(t, file(t, c.file), options(t))
			run(t, memory.New(nil), started, sent.wrap(env))
			for i, r := range sent.requests {
				var got []string
				for _, d := range r.Tools {
					got = append(got, d.Name)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("request %d: the model sees %v, want %v", i+1, got, c.want)
				}
			}
			if len(sent.requests) == 0 {
				t.Error("no model was asked")
			}
		})
	}
}

// rows: ALF-82
func TestPromptOfTheFileIsTheSystemTextOfEveryRequest(t *testing.T) {
	var sent recorder
	started, _, env := start(t, file(t, "prompt: {system: 'You remember: the sky is blue.'}"), options(t))
	run(t, memory.New(nil), started, sent.wrap(env))
	for i, r := range sent.requests {
		if r.System != "You remember: the sky is blue.\n\n"+fence.Notice {
			t.Errorf("request %d: system is %q", i+1, r.System)
		}
	}
	if len(sent.requests) != 3 {
		t.Errorf("%d requests", len(sent.requests))
	}
}

func TestResumingWithoutTheKeyLeavesTheRunAsItIs(t *testing.T) {
	started, _, _ := start(t, file(t, "model_policy: {primary: openai/gpt-5}"), options(t))
	t.Setenv("OPENAI_API_KEY", "")
	if _, err := launch.Environment(started, launch.Options{}); !errors.Is(err, models.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

func TestContinuedRunSendsTheEndedRunsConversationUnchanged(t *testing.T) {
	store := memory.New(nil)
	var before, after recorder
	started, _, env := start(t, file(t, "max_cycles: 2\nprompt: {system: You look.}"), options(t))
	id, events := run(t, store, started, before.wrap(env))
	if got := outcome(t, events); got.Reason != event.ReasonMaxCycles {
		t.Fatalf("ended with %s", got.Reason)
	}
	next, env, err := launch.Continue(t.Context(), store, id, "Look once more.", launch.Options{Flags: launch.Flags{Limits: []launch.Limit{{Setting: budget.CycleCap, Value: 7}}}, Host: launch.Host{Getenv: options(t).Getenv}})
	if err != nil {
		t.Fatal(err)
	}
	_, events = run(t, store, next, after.wrap(env))
	if got := outcome(t, events); got.Reason != event.ReasonFinalAnswer || got.Cycles != 3 {
		t.Errorf("ended with %s after %d cycles", got.Reason, got.Cycles)
	}
	last, first := before.requests[len(before.requests)-1], after.requests[0]
	if diff := cmp.Diff(last.System, first.System); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(last.Tools, first.Tools); diff != "" {
		t.Error(diff)
	}
	n := len(last.Messages)
	if diff := cmp.Diff(last.Messages, first.Messages[:n]); diff != "" {
		t.Errorf("the prefix changed (-before +after):\n%s", diff)
	}
	rest := first.Messages[n:]
	if len(rest) != 3 || rest[0].Role != llm.RoleAssistant || rest[1].Role != llm.RoleTool || rest[2].Parts.Text() != "Look once more." {
		t.Errorf("after the prefix come %d messages: %v", len(rest), rest)
	}
	if next.From == nil || next.From.Run != id || next.From.Seq == 0 {
		t.Errorf("from is %+v", next.From)
	}
}

func TestContinueNeedsAnEndedRunAndSomethingNew(t *testing.T) {
	store := memory.New(nil)
	launched := func(text string) string {
		started, _, env := start(t, file(t, text), options(t))
		id, _ := run(t, store, started, env)
		return id
	}
	stopped, answered, parked := launched("max_cycles: 2"), launched(""), launched("tools: {approvals: {fs.list: always}}")
	for _, c := range []struct {
		name, run, input string
		o                launch.Options
		want             error
	}{
		{"nothing new", stopped, "", launch.Options{}, launch.ErrNothingNew},
		{"a raised limit", stopped, "", launch.Options{Flags: launch.Flags{Limits: []launch.Limit{{Setting: budget.CycleCap, Value: 9}}}}, nil},
		{"a message", answered, "go on", launch.Options{}, nil},
		{"a raised limit after an answer", answered, "", launch.Options{Flags: launch.Flags{Limits: []launch.Limit{{Setting: budget.CycleCap, Value: 9}}}}, launch.ErrNothingNew},
		{"a parked run", parked, "go on", launch.Options{}, assembly.ErrNotEnded},
		{"no such run", "zzz", "go on", launch.Options{}, journal.ErrNotFound},
	} {
		_, env, err := launch.Continue(t.Context(), store, c.run, c.input, c.o)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			_ = env.Close()
		}
	}
}

// rows: ALDO-69
func TestAnAgentThatWasSentIsHeldToTheRulesOfAFile(t *testing.T) {
	var problems decode.Errors
	const sent = "identity: {name: sent}\nmodel_policy: {primary: scripted/steps.yaml}\niteration: {max_cycles: 2}\ncomposite: {strategy: sequential}\n"
	if _, _, err := launch.Agent(launch.File{Path: "sent.yaml", Text: []byte(sent), Sent: true}, "do it", options(t)); !errors.As(err, &problems) || problems[0].Path != "composite" {
		t.Errorf("of an agent that was sent: got %v", err)
	}
}
