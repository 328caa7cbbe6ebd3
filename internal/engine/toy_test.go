package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/toy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// A machine that is no agent runs on the driver as agents do: it starts runs that
// answer no call, waits, runs a program and evaluates; whatever is cut off between two commits goes
// on where it stood, and the runs are a tree.
func TestToyMachineContinuesAfterEachCrash(t *testing.T) {
	for dies := range 40 {
		t.Run(fmt.Sprint("after ", dies, " commits"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, dead := dying(dies)

				e := engine.New(store, toy.Machines, engine.Options{})
				t.Cleanup(func() { _ = e.Close() })
				ran := 0
				check := program(func(ctx context.Context, c tool.Invocation) (tool.Ended, error) {
					ran++
					return exits(0, "done")(ctx, c)
				})
				env := perform.Env{Evaluate: toy.Evaluate, Commands: check, Children: map[string]perform.Child{toy.Helper: {
					Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
						fresh := newRig(t, store).turns(scripted.Turn{Text: "yes"}).priced(1, 1)
						return fresh.started(), fresh.env, nil
					},
					Resume: func(string, event.RunStarted) (perform.Env, error) {
						return newRig(t, store).turns(scripted.Turn{Text: "yes"}).env, nil
					},
				}}}
				run, err := e.Start(t.Context(), toy.Started(), env)
				if err != nil {
					t.Fatal(err)
				}
				state, err := run.Wait(t.Context())
				died := err != nil
				if died {
					mustBe(t, err, dead)
					store.onAppend = nil
					time.Sleep(time.Minute) // leases end
					if run, err = e.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return env, nil }); err != nil {
						t.Fatal(err)
					}
					state, err = run.Wait(t.Context())
				}
				if err != nil || state.Outcome == nil || state.Outcome.FinalOutput != "yes and yes" || state.Outcome.Cost.USD == 0 {
					t.Fatalf("it ends as %+v, %v", state.Outcome, err)
				}
				if ran != 1 && !(ran == 2 && died) {
					t.Errorf("the program ran %d times", ran)
				}
				rows, err := store.Runs(t.Context(), journal.Filter{Root: run.ID})
				if err != nil || len(rows) != 3 {
					t.Fatalf("the tree has %d runs, %v", len(rows), err)
				}
				for _, row := range rows {
					if _, err := journal.Verify(t.Context(), store, row.ID, ""); err != nil || row.State != journal.Ended {
						t.Errorf("%+v, %v", row, err)
					}
				}
				stepsFit(t, store, run.ID)
			})
		})
	}
}

// stepsFit says that what a toy's children write, and what it writes about them,
// names their steps, and nothing else does.
func stepsFit(t *testing.T, store journal.Store, root string) {
	t.Helper()
	records, err := store.Tree(t.Context(), root, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]string{}
	for _, rec := range records {
		e, err := event.Decode(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		about := e.Run
		switch d := e.Data.(type) {
		case event.ChildStarted:
			steps[d.Child] = "deploy." + d.ID
			about = d.Child
		case event.RunStarted:
			if d.Step != steps[e.Run] {
				t.Errorf("the run %s is started as the step %q", e.Run, d.Step)
			}
		case event.ChildFinished:
			about = d.Child
		case event.BudgetReserved:
			about = cmp.Or(d.Run, about)
		case event.BudgetCommitted:
			about = cmp.Or(d.Run, about)
		}
		if e.Step != steps[about] {
			t.Errorf("%s of run %s is of the step %q, want %q", e.Type(), e.Run, e.Step, steps[about])
		}
	}
	if len(steps) != 2 {
		t.Errorf("the steps are %v", steps)
	}
}

// A wait belongs to the run: it lasts while no process drives it, the list shows what
// the run waits for, and a cancel ends it.
func TestAWaitIsListedAndEndsWithACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		e := engine.New(store, toy.Machines, engine.Options{})
		t.Cleanup(func() { _ = e.Close() })
		env := perform.Env{Children: map[string]perform.Child{toy.Helper: {
			Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
				fresh := newRig(t, store).turns(scripted.Turn{Text: "yes"})
				return fresh.started(), fresh.env, nil
			},
		}}}
		run, err := e.Start(t.Context(), toy.Started(), env)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		row, err := store.Run(t.Context(), run.ID)
		if err != nil || row.State != journal.Waiting || row.Detail != journal.WaitTime {
			t.Errorf("it is %+v, %v", row.Progress, err)
		}
		if _, err := journal.Verify(t.Context(), store, run.ID, ""); err != nil {
			t.Error(err)
		}
		if err := e.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if state, err := run.Wait(t.Context()); err != nil || state.Outcome == nil || state.Outcome.Reason != event.ReasonCancelled {
			t.Errorf("it ends as %+v, %v", state.Outcome, err)
		}
	})
}
