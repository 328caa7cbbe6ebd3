package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// trees are worktrees that are nowhere, by their names, with how often each was made.
type trees struct {
	mu   sync.Mutex
	made map[string]int
	// runs are the directories that commands ran in.
	runs []string
}

func (x *trees) Make(_ context.Context, name string) (string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made[name]++
	return "/trees/" + name, nil
}

func (x *trees) Find(_ context.Context, name string) (*event.Worktree, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made[name] == 0 {
		return nil, nil
	}
	return &event.Worktree{Path: "/trees/" + name, Head: "c0ffee"}, nil
}

func (x *trees) Commands(dir string) (tool.Commands, policy.Rules, func() error, error) {
	run := program(func(context.Context, tool.Invocation) (tool.Ended, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.runs = append(x.runs, dir)
		return tool.Ended{ExitCode: new(int), Output: "made\n"}, nil
	})
	return run, policy.Rules{Declared: true}, func() error { return nil }, nil
}

// Each step has the worktree that its id names, whatever is cut off between two commits:
// one that a crash left is used again, and none is made for anything else.
func TestAStepHasOneWorktreeAcrossCrashes(t *testing.T) {
	steps := []plan.Step{
		doneBy("write"), {ID: "make", Command: &plan.Command{Argv: []string{"make"}}},
		{ID: "count", Func: &plan.Func{Name: "count"}},
		{ID: "sub", DependsOn: []string{"write"}, Plan: &plan.Plan{Steps: []plan.Step{{ID: "each", Loop: &plan.Loop{
			Single: true, Items: &plan.Items{Static: []json.RawMessage{json.RawMessage(`1`)}}, Body: plan.Plan{Steps: []plan.Step{doneBy("")}},
		}}}}},
	}
	started, err := flow.Start(flow.Config{Plan: plan.Plan{Steps: steps, Worktrees: true}, Policy: &policy.Rules{}}, llm.UserText("Build it."))
	if err != nil {
		t.Fatal(err)
	}
	for dies := 60; dies >= 0; dies-- {
		commits := 0
		t.Run(fmt.Sprint("after ", dies, " commits"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, dead := dying(dies)
				e := engine.New(store, versions.Make, engine.Options{})
				t.Cleanup(func() { _ = e.Close() })
				x := &trees{made: map[string]int{}}
				worker := works(t, store, "done")
				worker.BeginIn = func(dir string, args json.RawMessage) (event.RunStarted, perform.Env, error) {
					started, env, err := worker.Begin(args)
					started.Workspace = dir
					return started, env, err
				}
				env := perform.Env{Worktrees: x, Commands: exits(1, "in the workspace"), Children: map[string]perform.Child{
					"worker": worker, "count": {Func: func(context.Context, json.RawMessage) (perform.Output, error) { return perform.Output{}, nil }},
				}}
				run, err := e.Start(t.Context(), started, env)
				if err != nil {
					t.Fatal(err)
				}
				if _, err = run.Wait(t.Context()); err != nil {
					mustBe(t, err, dead)
					store.onAppend = nil
					time.Sleep(time.Minute) // leases end
					if run, err = e.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return env, nil }); err != nil {
						t.Fatal(err)
					}
					if _, err = run.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				commits = store.count()
				x.holds(t, store, run.ID)
			})
		})
		dies = min(dies, commits)
	}
}

// holds reports what is not as the ids of the steps say.
func (x *trees) holds(t *testing.T, store journal.Store, root string) {
	t.Helper()
	want := map[string]string{"write": root + "/write", "make": root + "/make", "sub.each[0]": root + "/sub.each.0"}
	if names := slices.Sorted(maps.Keys(x.made)); !slices.Equal(names, slices.Sorted(maps.Values(want))) {
		t.Errorf("made: %v", names)
	}
	for _, dir := range x.runs {
		if dir != "/trees/"+want["make"] {
			t.Errorf("a command ran in %s", dir)
		}
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		records, err := store.Records(t.Context(), row.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			e, err := event.Decode(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.RunStarted:
				if row.ID != root && d.Workspace != "/trees/"+want[d.Step] {
					t.Errorf("the step %s works in %q", d.Step, d.Workspace)
				}
			case event.StepFinished:
				switch name, isolated := want[d.Step]; {
				case isolated && d.Status == event.StepStatusCompleted && (d.Worktree == nil || d.Worktree.Path != path.Join("/trees", name) || d.Worktree.Head != "c0ffee"):
					t.Errorf("the step %s leaves %+v", d.Step, d.Worktree)
				case !isolated && d.Worktree != nil:
					t.Errorf("the step %s has a worktree", d.Step)
				case d.Status != event.StepStatusCompleted && d.Step != "make": // which may be in doubt
					t.Errorf("the step %s ends as %s: %+v", d.Step, d.Status, d.Error)
				}
			}
		}
	}
}
