// Package bfcl runs the function-calling questions of the Berkeley leaderboard
// as scripted answers on all four wires: every right call must be validated and
// dispatched just so.
package bfcl

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// refused are questions whose published answer breaks the question's own
// schema in one call: validation must keep that call from its tool.
var refused = map[string]string{
	"simple_python_307":    "venue is true where the schema has a string",
	"parallel_152":         "mod is null where the schema has a number",
	"parallel_multiple_21": "x is a text where the schema has an array",
	"parallel_multiple_94": "elements are texts where the schema has integers",
}

// rows: HAR-88, ALF-62
func TestEveryRightCallIsValidatedAndDispatchedOnAllFourWires(t *testing.T) {
	e := engine.New(memory.New(nil), func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{})
	defer e.Close()
	for _, w := range wires() {
		for _, file := range []string{"simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"} {
			passed, failed := 0, 0
			for _, q := range load(t, file) {
				err := ask(t.Context(), e, w, q)
				why, wrong := refused[q.ID]
				switch {
				case wrong && err == nil:
					t.Errorf("%s on %s was dispatched although %s", q.ID, w.name, why)
				case !wrong && err != nil:
					t.Errorf("%s on %s: %v", q.ID, w.name, err)
				default:
					passed++
					continue
				}
				failed++
			}
			fmt.Printf("    gate bfcl/%s/%s: %d passed, %d failed, 0 skipped\n", w.name, file, passed, failed)
		}
	}
}

// received collects what the tools were called with, in call order.
type received struct {
	mu    sync.Mutex
	calls map[string]any
}

func ask(ctx context.Context, e *engine.Engine, w wireFormat, q question) error {
	got := received{calls: map[string]any{}}
	var tools []tool.Tool
	for _, f := range q.Function {
		schema, err := json.Marshal(jsonSchema(f.Parameters))
		if err != nil {
			return err
		}
		tools = append(tools, tool.Tool{
			Name: f.Name, Description: f.Description, Schema: schema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				var args any
				if err := json.Unmarshal(c.Args, &args); err != nil {
					return tool.Result{}, err
				}
				got.mu.Lock()
				defer got.mu.Unlock()
				got.calls[c.ID] = []any{f.Name, args}
				return tool.Result{Output: "ok"}, nil
			},
		})
	}
	set, err := tool.NewSet(slices.CompactFunc(tools, func(a, b tool.Tool) bool { return a.Name == b.Name })...)
	if err != nil {
		return err
	}
	s := &service{wire: w, calls: q.rightCalls()}
	for _, d := range set.Defs() {
		s.local = append(s.local, d.Name)
	}
	outcome, err := run(ctx, e, w.open(&http.Client{Transport: s}), set, q.text())
	if err != nil {
		return err
	}
	if outcome.Reason != event.ReasonFinalAnswer || outcome.FinalOutput != "done" {
		return fmt.Errorf("the run ended with %s: %+v", outcome.Reason, outcome.Error)
	}
	return compare(s.calls, &got)
}

func run(ctx context.Context, e *engine.Engine, model llm.Model, set *tool.Set, task string) (*event.Outcome, error) {
	cfg := agent.Config{Targets: []agent.Target{{Model: "test/m", Price: &llm.Price{}}}, Tools: set.Defs(), Whole: true}
	cfg.Policy.Declared = true
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText(task))
	if err != nil {
		return nil, err
	}
	r, err := e.Start(ctx, started, engine.Env{
		Model: func(string) (llm.Model, string, error) { return model, "m", nil }, Tools: set,
	})
	if err != nil {
		return nil, err
	}
	state, err := r.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return state.Outcome, nil
}

// compare holds what the tools received against the right calls, in order.
func compare(want []call, got *received) error {
	ids := make([]string, 0, len(got.calls))
	for id := range got.calls {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp2(len(a), len(b), a, b) })
	var have, expect []any
	for _, id := range ids {
		have = append(have, got.calls[id])
	}
	for _, c := range want {
		expect = append(expect, []any{c.name, normal(c.args)})
	}
	if diff := cmp.Diff(expect, have); diff != "" {
		return fmt.Errorf("dispatched otherwise (-right +dispatched):\n%s", diff)
	}
	return nil
}

func cmp2(la, lb int, a, b string) int {
	if la != lb {
		return la - lb
	}
	if a < b {
		return -1
	}
	return 1
}

// normal gives numbers the type that they have after a trip over the wire.
func normal(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		return v
	}
	return out
}
