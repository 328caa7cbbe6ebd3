package launch_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/tool"
)

// A writer of the journal can decide about calls, so a run that continues in another
// workspace must protect a journal there.
func TestContinuedRunProtectsWhatLiesInItsOwnWorkspace(t *testing.T) {
	store, elsewhere := memory.New(nil), t.TempDir()
	o := options(t)
	o.Journal = filepath.Join(elsewhere, "runs.db")
	started, cfg, env := start(t, file(t, "tools: {allow: [fs.list, fs.glob, fs.write]}"), o)
	id, _ := run(t, store, started, env)

	next, env, err := launch.Continue(t.Context(), store, id, "go on", launch.Options{Flags: launch.Flags{Workspace: elsewhere}, Host: launch.Host{Journal: o.Journal}})
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

// Changes that the owner makes between two runs are accepted.
// rows: ALF-64
func TestContinuedRunPinsItsHooksProgramsAtItsStart(t *testing.T) {
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

// The model of a run without an agent file cannot be replaced.
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
	id, _ := run(t, store, started, perform.Env{Tools: &set, Model: func(string) (llm.Model, string, error) { return model, "", nil }})
	for name, o := range map[string]launch.Options{
		"as it was": {}, "with another model": {Flags: launch.Flags{Model: "scripted/steps.yaml", Dir: "testdata/scripts"}},
	} {
		if _, _, err := launch.Continue(t.Context(), store, id, "go on", o); !errors.Is(err, launch.ErrNoFile) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A fork may have another model, whose script is in another directory.
func TestContinuedForkFindsTheModelThatItWasGiven(t *testing.T) {
	store, dir := memory.New(nil), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte("- text: one\n- text: two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started, _, env := start(t, file(t, ""), options(t))
	id, _ := run(t, store, started, env)
	e := engine.New(store, versions.Make, engine.Options{})
	defer e.Close()
	b, err := e.Branch(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	change, _, err := launch.Fork(b, launch.ForkChanges{Model: "scripted/other.yaml"}, launch.Options{Flags: launch.Flags{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := e.Fork(t.Context(), b, change)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Resume(t.Context(), fork, func(s event.RunStarted) (perform.Env, error) { return launch.Environment(s, launch.Options{}) })
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

// The script of a fork's model is protected like that of the file's model.
func TestAForkProtectsTheScriptOfItsModel(t *testing.T) {
	o := options(t)
	if err := os.WriteFile(filepath.Join(o.Workspace, "other.yaml"), []byte("- text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, id := ended(t, "", o)
	e := engine.New(store, versions.Make, engine.Options{})
	defer e.Close()
	b, err := e.Branch(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	change, _, err := launch.Fork(b, launch.ForkChanges{Model: "scripted/other.yaml"}, launch.Options{Flags: launch.Flags{Dir: o.Workspace}})
	if err != nil {
		t.Fatal(err)
	}
	var cfg agent.Config
	if err := json.Unmarshal(change.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	v := cfg.Policy.Decide(&event.ToolCall{Tool: "fs.write", Facts: &event.Facts{
		Risk: event.RiskWrite, Paths: []event.PathUse{{Path: "other.yaml", Write: true}},
	}})
	if v.Decision != event.DecisionAsk || v.Rule != "protected_paths: other.yaml" {
		t.Errorf("writing the script is %s by %s", v.Decision, v.Rule)
	}
}

// The ended run may have had a sandbox that the new one lacks.
func TestContinuedRunWarnsOfCommandsThatNothingHolds(t *testing.T) {
	store := memory.New(nil)
	started, _, env := start(t, file(t, "tools: {allow: [fs.list, fs.glob, shell.exec], approvals: {shell.exec: never}}"), options(t))
	started.Sandbox, started.Warnings = "bubblewrap", nil
	id, _ := run(t, store, started, env)
	next, _ := continued(t, store, id, launch.Options{})
	if !warnsOf(next.Warnings, "commands run without approval and without a sandbox") {
		t.Errorf("warns of %q", next.Warnings)
	}
}

// ended returns a run of a file that has ended, for any model.
func ended(t *testing.T, text string, o launch.Options) (journal.Store, string) {
	t.Helper()
	model, err := scripted.Parse("answers.yaml", []byte("- text: done\n"))
	if err != nil {
		t.Fatal(err)
	}
	started, _, env := start(t, file(t, text), o)
	env.Model = func(string) (llm.Model, string, error) { return model, "", nil }
	store := memory.New(nil)
	id, _ := run(t, store, started, env)
	return store, id
}

// continued continues a run, and returns the new run's configuration.
func continued(t *testing.T, store journal.Store, id string, o launch.Options) (event.RunStarted, agent.Config) {
	t.Helper()
	o.Getenv = options(t).Getenv
	next, env, err := launch.Continue(t.Context(), store, id, "go on", o)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	var cfg agent.Config
	if err := json.Unmarshal(next.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	return next, cfg
}

// forkedTo returns the changes of a fork at the first event that replaces the model.
func forkedTo(t *testing.T, store journal.Store, id, model string) (agent.Config, []string, error) {
	t.Helper()
	e := engine.New(store, versions.Make, engine.Options{})
	defer e.Close()
	b, err := e.Branch(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	var cfg agent.Config
	change, warnings, err := launch.Fork(b, launch.ForkChanges{Model: model}, options(t))
	if err == nil {
		err = json.Unmarshal(change.Config, &cfg)
	}
	return cfg, warnings, err
}

// A provider rejects a request for a longer answer than the model supports.
func TestAnotherModelIsAskedForNoLongerAnswersThanItGives(t *testing.T) {
	const haiku = "anthropic/claude-3-haiku-20240307"
	for _, tt := range []struct {
		file   string
		want   int
		warned bool
	}{
		{"model_policy: {primary: anthropic/claude-sonnet-4-5}", 4096, false},
		{"model_policy: {primary: anthropic/claude-sonnet-4-5, decoding: {max_tokens: 5000}}", 5000, true},
	} {
		store, id := ended(t, tt.file, options(t))
		next, cfg := continued(t, store, id, launch.Options{Flags: launch.Flags{Model: haiku}})
		if cfg.MaxTokens != tt.want || warnsOf(next.Warnings, "gives at most 4096") != tt.warned {
			t.Errorf("%s: continued with %d tokens and %q", tt.file, cfg.MaxTokens, next.Warnings)
		}
		cfg, warnings, err := forkedTo(t, store, id, haiku)
		if err != nil || cfg.MaxTokens != tt.want || warnsOf(warnings, "gives at most 4096") != tt.warned {
			t.Errorf("%s: forked with %d tokens, %q and %v", tt.file, cfg.MaxTokens, warnings, err)
		}
	}
}

func TestModelChangeKeepsExplicitCap(t *testing.T) {
	const unpriced = "openai/gpt-unknown"
	dollars := 2.5
	byFlag, asDefault := options(t), options(t)
	byFlag.BudgetUSD, asDefault.BudgetUSD = &dollars, new(budget.DefaultUSDPerRun)
	for name, tt := range map[string]struct {
		file    string
		o       launch.Options
		refused bool
	}{
		"by the file":                       {"model_policy: {primary: openai/gpt-5, budget: {usd_per_run: 5}}", options(t), true},
		"by a flag":                         {"model_policy: {primary: openai/gpt-5}", byFlag, true},
		"by a flag, as high as the default": {"model_policy: {primary: openai/gpt-5}", asDefault, true},
		"by nobody":                         {"model_policy: {primary: openai/gpt-5}", options(t), false},
	} {
		store, id := ended(t, tt.file, tt.o)
		_, env, err := launch.Continue(t.Context(), store, id, "go on", launch.Options{Flags: launch.Flags{Model: unpriced}, Host: launch.Host{Getenv: tt.o.Getenv}})
		if env.Close != nil {
			_ = env.Close()
		}
		if got := err != nil && strings.Contains(err.Error(), "no price is known for "+unpriced); got != tt.refused {
			t.Errorf("%s: continued: %v", name, err)
		}
		_, _, err = forkedTo(t, store, id, unpriced)
		if got := err != nil && strings.Contains(err.Error(), "no price is known for "+unpriced); got != tt.refused {
			t.Errorf("%s: forked: %v", name, err)
		}
	}
}

// Older versions did not record whether a cap was the default one.
func TestARunOfAnOlderVersionUnderTheDefaultCapGoesOnUnderIt(t *testing.T) {
	const unpriced = "openai/gpt-unknown"
	started, cfg, env := start(t, file(t, "model_policy: {primary: openai/gpt-5}"), options(t))
	cfg.DefaultCap = false
	started.Warnings = []string{"the run stops at USD 5.00, the default cap; --budget, --no-budget or model_policy.budget.usd_per_run change it"}
	var err error
	if started.Config, err = json.Marshal(cfg); err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Parse("answers.yaml", []byte("- text: done\n"))
	if err != nil {
		t.Fatal(err)
	}
	env.Model = func(string) (llm.Model, string, error) { return model, "", nil }
	store := memory.New(nil)
	id, _ := run(t, store, started, env)
	if next, cfg := continued(t, store, id, launch.Options{Flags: launch.Flags{Model: unpriced}}); !cfg.DefaultCap || !warnsOf(next.Warnings, "the default cost limit of USD 5.00") {
		t.Errorf("continued by default: %t, with %q", cfg.DefaultCap, next.Warnings)
	}
	if _, cfg := continued(t, store, id, launch.Options{Flags: launch.Flags{Limits: []launch.Limit{{Setting: "max_total_cost", Value: 9}}}}); cfg.DefaultCap || cfg.Limits.USDPerRun != 0 {
		t.Errorf("continued with a cap of its own: %+v", cfg.Limits)
	}
	if cfg, _, err := forkedTo(t, store, id, unpriced); err != nil || !cfg.DefaultCap {
		t.Errorf("forked by default: %t, %v", cfg.DefaultCap, err)
	}
}

func TestContinuedRunGoesByWhatIsKnownOfItsModelNow(t *testing.T) {
	const model = "openai/gpt-unknown"
	of := func(usd float64, window int) launch.Options {
		o := options(t)
		o.Config.Models = map[string]models.Override{model: {ContextWindow: window, Price: &llm.Price{Input: usd, Output: usd}}}
		return o
	}
	store, id := ended(t, "model_policy: {primary: "+model+"}", of(1, 50_000))
	if _, cfg := continued(t, store, id, of(3, 90_000)); cfg.Targets[0].Price.Input != 3 || cfg.Targets[0].ContextWindow != 90_000 {
		t.Errorf("with another price and window: %+v", cfg.Targets[0])
	}
	if _, cfg := continued(t, store, id, launch.Options{}); cfg.Targets[0].Price == nil || cfg.Targets[0].Price.Input != 1 || cfg.Targets[0].ContextWindow != 50_000 {
		t.Errorf("where nothing is known any more: %+v", cfg.Targets[0])
	}
}

// The ended run's warnings may no longer apply.
func TestContinuedRunIsWarnedOfWhatIsSoNow(t *testing.T) {
	const byDefault, asWritten = "the default cost limit", "untrusted text, private data"
	store, id := ended(t, "tools: {rule_of_two: off}", options(t))
	before, _ := continued(t, store, id, launch.Options{})
	dollars := 10.0
	next, _ := continued(t, store, id, launch.Options{Flags: launch.Flags{BudgetUSD: &dollars}})
	if !warnsOf(before.Warnings, byDefault) || warnsOf(next.Warnings, byDefault) || !warnsOf(next.Warnings, asWritten) {
		t.Errorf("continued under the same cap %q, and under another %q", before.Warnings, next.Warnings)
	}
}

func TestContinueRefusesAModelWithoutRoomForThePrompt(t *testing.T) {
	const small = "openai/gpt-small"
	o := options(t)
	o.Config.Models = map[string]models.Override{small: {ContextWindow: 6000}}
	store, id := ended(t, "prompt: {system: '"+strings.Repeat("Be brief. ", 4000)+"'}\nmodel_policy: {primary: openai/gpt-5}", o)
	o.Model = small
	if _, _, err := launch.Continue(t.Context(), store, id, "go on", o); !errors.Is(err, compact.ErrNoRoom) {
		t.Errorf("got %v", err)
	}
}

func TestContinuedRunNamesTheFlagsThatItGoesBy(t *testing.T) {
	o := options(t)
	o.Approve = agent.ApproveAll
	store, id := ended(t, "", o)
	if next, cfg := continued(t, store, id, launch.Options{}); next.Options["approve"] != "all" || cfg.Approve != agent.ApproveAll {
		t.Errorf("without a flag %q, %q", next.Options["approve"], cfg.Approve)
	}
	if next, cfg := continued(t, store, id, launch.Options{Flags: launch.Flags{Approve: agent.ApproveDeny}}); next.Options["approve"] != "deny" || cfg.Approve != agent.ApproveDeny {
		t.Errorf("with one %q, %q", next.Options["approve"], cfg.Approve)
	}
}

func warnsOf(warnings []string, what string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, what) })
}
