package launch_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// looped launches an agent file with a loop, whose agent says done.
func looped(t *testing.T, keys string, o launch.Options) (flow.Config, []event.Event) {
	t.Helper()
	return loopedIn(t, memory.New(nil), keys, o)
}

func loopedIn(t *testing.T, store journal.Store, keys string, o launch.Options) (flow.Config, []event.Event) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "loop.yaml")
	text := "identity: {name: fix}\nmodel_policy: {primary: {model: scripted/s.yaml}}\n" + keys
	for name, body := range map[string]string{path: text, filepath.Join(filepath.Dir(path), "s.yaml"): "- text: done\n"} {
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.Dir = filepath.Dir(path)
	started, env, err := launch.Agent(launch.File{Path: path, Text: []byte(text)}, "Try.", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	var cfg flow.Config
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		t.Fatal(err)
	}
	_, events := run(t, store, started, env)
	return cfg, events
}

// The command of test_pass is split at white space and started without a shell, so no
// character has a special meaning.
// rows: RON-15..18
func TestTheCommandOfACriterionIsNoShellLine(t *testing.T) {
	cfg, events := looped(t, `loop: {loopEnabled: true, loopCriteria: {type: test_pass, value: "echo $HOME *  && false | false > x"}}`, options(t))
	if d := find[event.CommandFinished](t, events); d.Output != "$HOME * && false | false > x\n" || d.ExitCode == nil || *d.ExitCode != 0 {
		t.Errorf("it prints %q, and ends as %+v", d.Output, d)
	}
	if got := outcome(t, events); got.Reason != event.ReasonConditionMet || got.Kind != "command" || got.Iterations != 1 {
		t.Errorf("%+v", got)
	}
	if stop := cfg.Plan.Steps[0].Loop.StopWhen[0]; stop.Command.Timeout != 60*time.Second {
		t.Errorf("it has %s", stop.Command.Timeout)
	}
}

// The workspaces in this test are not repositories.
// rows: RON-16
func TestACommandThatMisbehavesDoesNotHoldUpALoop(t *testing.T) {
	for name, tt := range map[string]struct {
		argv  string
		met   bool
		error event.ErrorType
	}{
		"it never ends":                     {`[sleep, "300"]`, false, event.ErrorTimeout},
		"it prints without end":             {`[cat, /dev/zero]`, false, event.ErrorTimeout},
		"it reads its input":                {`[cat]`, true, ""},
		"it leaves something behind":        {`[sh, -c, "sleep 300 & echo on"]`, true, ""},
		"it leaves something of its own":    {`[sh, -c, "setsid sleep 5 & echo on"]`, true, ""},
		"it closes its output and lives on": {`[sh, -c, "sleep 300 >&- 2>&-"]`, false, event.ErrorTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			_, events := looped(t, fmt.Sprintf("loop: {loopEnabled: true, maxIterations: 1, stop_when: [{command: {argv: %s, timeout: 2s}}]}", tt.argv), options(t))
			got, d := outcome(t, events), find[event.CommandFinished](t, events)
			if (got.Reason == event.ReasonConditionMet) != tt.met || got.Iterations != 1 || d.ErrorType != tt.error || len(d.Output) > 40_000 {
				t.Errorf("the command ends with %q, exit code %v and %d bytes, the loop as %+v", d.ErrorType, d.ExitCode, len(d.Output), got)
			}
			if it := find[event.Iteration](t, events); it.Tree == "" || strings.HasPrefix(it.Tree, "git") {
				t.Errorf("the iteration says of the workspace %q", it.Tree)
			}
		})
	}
}

// An invalid pattern never matches, so the cap ends the loop.
// rows: RON-14
func TestAPatternThatIsNoneGoesOn(t *testing.T) {
	_, events := looped(t, "loop: {loopEnabled: true, loopCriteria: {type: regex, value: '(done'}, maxIterations: 7}", options(t))
	if got := outcome(t, events); got.Reason != event.ReasonMaxIterations || got.Iterations != 7 {
		t.Errorf("%+v", got)
	}
}

// Iterations that change nothing end a loop only if its file sets stuck_after. An
// answer counts as a change only if the agent cannot change files.
// rows: RON-11
func TestOnlyStuckAfterEndsALoopThatChangesNothing(t *testing.T) {
	const nothing, any = "tools: {allow: []}\n", "tools: {allow: [fs.read, fs.write, shell.exec]}\n"
	for keys, want := range map[string]struct {
		reason event.Reason
		ran    int
	}{
		any + "loop: {loopEnabled: true, maxIterations: 7}":                                                                    {event.ReasonMaxIterations, 7},
		any + "loop: {loopEnabled: true, maxIterations: 7, loopCriteria: {type: regex, value: never}}":                         {event.ReasonMaxIterations, 7},
		any + "loop: {loopEnabled: true, maxIterations: 7, loopCriteria: {type: test_pass, value: ls none}}":                   {event.ReasonMaxIterations, 7},
		any + "loop: {loopEnabled: true, maxIterations: 7, stuck_after: 3}":                                                    {event.ReasonStuck, 3},
		nothing + "loop: {loopEnabled: true, maxIterations: 7, stuck_after: 3}":                                                {event.ReasonMaxIterations, 7},
		"tools: {allow: [fs.read]}\nloop: {loopEnabled: true, maxIterations: 7, stuck_after: 3}":                               {event.ReasonMaxIterations, 7},
		"tools: {mode: plan}\nloop: {loopEnabled: true, maxIterations: 7, stuck_after: 3}":                                     {event.ReasonMaxIterations, 7},
		nothing + "loop: {loopEnabled: true, maxIterations: 9, stuck_after: 3, loopCriteria: {type: regex, value: 'draft 6'}}": {event.ReasonConditionMet, 6},
	} {
		t.Run(keys, func(t *testing.T) {
			o := options(t)
			o.Workspace = t.TempDir()
			script := filepath.Join(t.TempDir(), "drafts.yaml")
			var drafts strings.Builder
			for n := range 9 {
				fmt.Fprintf(&drafts, "- {for: iteration, text: draft %d}\n", n+1)
			}
			if err := os.WriteFile(script, []byte(drafts.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Model = "scripted/" + script
			_, events := looped(t, keys, o)
			if got := outcome(t, events); got.Reason != want.reason || got.Iterations != want.ran {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Every iteration is a run with the tools and limits of the file, and a bound in money
// of its own; the budget of the file bounds the loop.
// rows: RON-31, RON-69
func TestEachIterationHasTheToolsAndTheLimitsOfItsFile(t *testing.T) {
	store := memory.New(nil)
	cfg, events := loopedIn(t, store, `tools: {allow: [fs.read]}
budgets: {max_tool_calls: 3, max_wall_time_seconds: 3600}
usd_per_iteration: 0.25
loop: {loopEnabled: true, maxIterations: 3}`, options(t))
	if cfg.Limits.MaxWallSeconds != 3600 || cfg.Limits.MaxToolCalls != 0 {
		t.Errorf("the loop is bounded by %+v", cfg.Limits)
	}
	seen := 0
	for _, e := range events {
		child, is := e.Data.(event.ChildStarted)
		if !is {
			continue
		}
		seen++
		records, err := store.Records(t.Context(), child.Child, 0, 1)
		if err != nil || len(records) == 0 {
			t.Fatal(err)
		}
		first, err := event.Decode(records[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		var own agent.Config
		if err := json.Unmarshal(first.Data.(event.RunStarted).Config, &own); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range own.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Equal(names, []string{"fs.read", "result.read"}) || own.Limits.USDPerRun != 0.25 || own.Limits.MaxToolCalls != 3 {
			t.Errorf("%s has the tools %v and the limits %+v", child.ID, names, own.Limits)
		}
	}
	if seen != 3 {
		t.Errorf("%d iterations", seen)
	}
}
