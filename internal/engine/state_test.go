package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// The engine that drives a run knows its state without a look at the journal, in every
// cycle the same as another engine reads there; and it reads the journal of one that has
// ended.
func TestTheStateOfADrivenRunIsNotFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &runReads{Store: memory.New(nil)}
		turn := scripted.Turn{ToolCalls: calls("wait", `{}`), Usage: &llm.Usage{Input: 10, Output: 5}}
		r := newRig(t, store).turns(turn, turn, scripted.Turn{Text: "done"}).tools(tool.Tool{Name: "wait", ReadOnly: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Minute)
			return tool.Result{Output: "waited"}, nil
		}})
		elsewhere := r.other()
		run := r.start(t.Context())
		state := func(at string, looks bool) drive.RunState {
			t.Helper()
			before := store.n.Load()
			here, err := r.State(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			if looked := store.n.Load() > before; looked != looks {
				t.Errorf("%s: the journal was read: %v", at, looked)
			}
			there, err := elsewhere.State(t.Context(), run.ID)
			if diff := cmp.Diff(there, here); err != nil || diff != "" {
				t.Errorf("%s: %v, the journal has (-), the driver (+):\n%s", at, err, diff)
			}
			return here
		}
		synctest.Wait()
		first := state("first cycle", false)
		time.Sleep(time.Minute)
		synctest.Wait()
		second := state("second cycle", false)
		if first.Usage.Input != 10 || second.Usage.Input != 20 {
			t.Errorf("%d and %d tokens of input", first.Usage.Input, second.Usage.Input)
		}
		outcome(t, run)
		state("at the end", true)
	})
}
