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

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
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

func ask(ctx context.Context, e *engine.Engine, w wireFormat, q question, rules ...policy.Rule) error {
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
	r, outcome, err := run(ctx, e, w.open(&http.Client{Transport: s}), set, q.text(), rules...)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		return stopped(ctx, r, s.calls, &got)
	}
	if outcome.Reason != event.ReasonFinalAnswer || outcome.FinalOutput != "done" {
		return fmt.Errorf("the run ended with %s: %+v", outcome.Reason, outcome.Error)
	}
	return compare(s.calls, &got)
}

// stopped wants each right call in the journal, with the decision that kept it
// from its tool.
func stopped(ctx context.Context, r *engine.Run, want []call, got *received) error {
	if len(got.calls) > 0 {
		return fmt.Errorf("%d denied calls were dispatched", len(got.calls))
	}
	var asked, story []string
	for range want {
		asked = append(asked, "tool_call", "policy.decision deny", "tool_result "+string(event.ErrorDenied))
	}
	for e, err := range r.Events(ctx, false) {
		if err != nil {
			return err
		}
		switch d := e.Data.(type) {
		case event.ToolCall:
			story = append(story, "tool_call")
		case event.PolicyDecision:
			story = append(story, "policy.decision "+string(d.Decision))
		case event.ToolStarted:
			story = append(story, "tool.started")
		case event.ToolResult:
			story = append(story, "tool_result "+string(d.ErrorType))
		}
	}
	slices.Sort(asked)
	slices.Sort(story)
	if diff := cmp.Diff(asked, story); diff != "" {
		return fmt.Errorf("(-want +got)\n%s", diff)
	}
	return nil
}

// rows: HAR-88
func TestEveryCallIsJudgedAndJournalledOnAllFourWires(t *testing.T) {
	e := engine.New(memory.New(nil), func(string) (machine.Machine, error) { return agent.New(), nil }, engine.Options{})
	defer e.Close()
	for _, w := range wires() {
		for _, q := range load(t, "parallel")[:3] {
			if err := ask(t.Context(), e, w, q, policy.Rule{Decision: event.DecisionDeny, Tool: "*"}); err != nil {
				t.Errorf("%s on %s: %v", q.ID, w.name, err)
			}
		}
	}
}

func run(ctx context.Context, e *engine.Engine, model llm.Model, set *tool.Set, task string, rules ...policy.Rule) (*engine.Run, *event.Outcome, error) {
	cfg := agent.Config{Targets: []agent.Target{{Model: "test/m", Price: &llm.Price{}}}, Tools: set.Defs(), NoStream: true}
	cfg.Policy.Declared, cfg.Policy.Rules = true, rules
	started, err := agent.Start(cfg.WithDefaults(), llm.UserText(task))
	if err != nil {
		return nil, nil, err
	}
	r, err := e.Start(ctx, started, perform.Env{
		Model: func(string) (llm.Model, string, error) { return model, "m", nil }, Tools: set,
	})
	if err != nil {
		return nil, nil, err
	}
	state, err := r.Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	return r, state.Outcome, nil
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
