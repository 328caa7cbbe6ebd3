package launch_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// Whoever writes to the journal decides about calls: a run that goes on in
// another workspace must not have its journal there unprotected.
func TestContinuedRunProtectsWhatLiesInItsOwnWorkspace(t *testing.T) {
	store, elsewhere := memory.New(nil), t.TempDir()
	o := options(t)
	o.Journal = filepath.Join(elsewhere, "runs.db")
	started, cfg, env := start(t, file(t, "tools: {allow: [fs.list, fs.glob, fs.write]}"), o)
	id, _ := run(t, store, started, env)

	next, env, err := launch.Continue(t.Context(), store, id, "go on", launch.Options{Workspace: elsewhere, Journal: o.Journal})
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	write := event.ToolCall{Tool: "fs.write", Facts: &event.Facts{Risk: event.RiskWrite, Paths: []event.PathUse{{Path: "runs.db", Write: true}}}}
	if got := cfg.Policy.Decide(&write).Decision; got != event.DecisionAllow {
		t.Fatalf("in the first workspace, where it is a file like any other: %s", got)
	}
	if err := json.Unmarshal(next.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	if v := cfg.Policy.Decide(&write); v.Decision != event.DecisionAsk {
		t.Errorf("to write the journal is %s by %s", v.Decision, v.Rule)
	}
	if next.Policy != cfg.Policy.Version() {
		t.Errorf("the first event names the policy %s, and holds %s", next.Policy, cfg.Policy.Version())
	}
}

// What its owner changed between two runs is no change within one.
//
// rows: ALF-64
func TestContinuedRunHoldsTheProgramsOfItsHooksAsTheyAreWhenItBegins(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	guard := filepath.Join(dir, "guard")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(guard, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("#!/bin/sh\nexit 0\n")
	o := options(t)
	started, _, env := start(t, file(t, "hooks: {before_tool: [{command: ["+guard+"]}]}"), o)
	id, _ := run(t, store, started, env)

	write("#!/bin/sh\nexit 2\n")
	next, env, err := launch.Continue(t.Context(), store, id, "go on", launch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	said, err := env.Hooks[0].Run(t.Context(), hook.Call{Stage: event.HookBeforeTool, Args: []byte(`{}`)})
	if err != nil || said.Decision != event.HookBlock {
		t.Errorf("the hook says %q, %v", said.Decision, err)
	}
	if len(next.HookFiles) != 1 || next.HookFiles[0].Path != guard || next.HookFiles[0].Digest == started.HookFiles[0].Digest {
		t.Errorf("pinned %+v", next.HookFiles)
	}
}

// A run without an agent file has nothing that another model could be put into.
func TestContinueRefusesARunThatAProgramStarted(t *testing.T) {
	model, err := scripted.Parse("answers.yaml", []byte("- text: done\n"))
	if err != nil {
		t.Fatal(err)
	}
	started, err := agent.Start(agent.Config{Targets: []agent.Target{{Model: "scripted/answers.yaml"}}}.WithDefaults(), llm.UserText("do it"))
	if err != nil {
		t.Fatal(err)
	}
	store, set := memory.New(nil), tool.Set{}
	id, _ := run(t, store, started, engine.Env{Tools: &set, Model: func(string) (llm.Model, string, error) { return model, "", nil }})
	for name, o := range map[string]launch.Options{
		"as it was": {}, "with another model": {Model: "scripted/steps.yaml", Dir: "testdata/scripts"},
	} {
		if _, _, err := launch.Continue(t.Context(), store, id, "go on", o); !errors.Is(err, launch.ErrNoFile) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A fork may have another model, and that its script in another directory.
func TestContinuedForkFindsTheModelThatItWasGiven(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte("- text: one\n- text: two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started, _, env := start(t, file(t, ""), options(t))
	id, _ := run(t, store, started, env)
	e := engine.New(store, launch.Machine, engine.Options{})
	defer e.Close()
	b, err := e.Branch(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	change, _, err := launch.Fork(b, launch.ForkChanges{Model: "scripted/other.yaml"}, launch.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := e.Fork(t.Context(), b, change)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Resume(t.Context(), fork, func(s event.RunStarted) (engine.Env, error) { return launch.Environment(s, launch.Options{}) })
	if err != nil {
		t.Fatal(err)
	}
	drain(t, r)
	_, env, err = launch.Continue(t.Context(), store, fork, "go on", launch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = env.Close()
}

// The ended run may have had a sandbox that the new one has not.
func TestContinuedRunWarnsOfCommandsThatNothingHolds(t *testing.T) {
	store := memory.New(nil)
	started, _, env := start(t, file(t, "tools: {allow: [fs.list, fs.glob, shell.exec], approvals: {shell.exec: never}}"), options(t))
	started.Sandbox, started.Warnings = "bubblewrap", nil
	id, _ := run(t, store, started, env)
	next, env, err := launch.Continue(t.Context(), store, id, "go on", launch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = env.Close()
	if len(next.Warnings) != 1 || !strings.Contains(next.Warnings[0], "commands run unasked and outside a sandbox") {
		t.Errorf("warns of %q", next.Warnings)
	}
}
