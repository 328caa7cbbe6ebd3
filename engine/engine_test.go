package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// bench is a run with a scripted model and tools of the test's.
type bench struct {
	turns []scripted.Turn
	tools []tool.Tool
	cfg   agent.Config
}

func newMachine(string) (machine.Machine, error) { return agent.New(), nil }

func (b bench) run(t *testing.T) (event.Outcome, []event.Event) {
	t.Helper()
	e := engine.New(memory.New(nil), newMachine, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	set, err := tool.NewSet(b.tools...)
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Targets = []agent.Target{{Model: "scripted/test", Price: &llm.Price{}}}
	b.cfg.Tools = set.Defs()
	b.cfg.Policy.Declared = true
	started, err := agent.Start(b.cfg.WithDefaults(), llm.UserText("do it"))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New("test", b.turns...)
	r, err := e.Start(t.Context(), started, "", engine.Env{
		Model: func(string) (llm.Model, string, error) { return model, "test", nil }, Tools: set,
	})
	if err != nil {
		t.Fatal(err)
	}
	var events []event.Event
	for ev, err := range r.Events(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	state, err := r.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Outcome == nil {
		t.Fatalf("the run did not end: %+v", state)
	}
	return *state.Outcome, events
}

func names(events []event.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e.Type())
	}
	return out
}

func calls(pairs ...string) []scripted.Call {
	var out []scripted.Call
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, scripted.Call{Name: pairs[i], Arguments: json.RawMessage(pairs[i+1])})
	}
	return out
}

// rows: ALDO-1, ALDO-38..46, ALF-1, ALF-3, HAR-2, HAR-3, HAR-25
func TestACycleJournalsItsEventsInTheDeclaredOrder(t *testing.T) {
	echo := tool.New("echo", "Say it again.", func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		return "you said " + a.Text, nil
	})
	outcome, events := bench{
		tools: []tool.Tool{echo},
		turns: []scripted.Turn{
			{Text: "let me echo", ToolCalls: calls("echo", `{"text":"hi"}`)},
			{Text: "done", Expect: &scripted.Expectation{Last: []string{"you said hi"}}},
		},
	}.run(t)
	want := []string{
		"run.started",
		"cycle.start", "model.requested", "model.response", "tool_call", "policy.decision", "tool.started", "tool_result", "tool.results",
		"cycle.start", "model.requested", "model.response",
		"run.terminated_by", "run.completed",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Errorf("events:\n got %v\nwant %v", got, want)
	}
	if outcome.Reason != event.ReasonFinalAnswer || !outcome.OK || outcome.FinalOutput != "done" {
		t.Errorf("outcome %+v", outcome)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) || e.Pos != int64(i+1) {
			t.Errorf("event %d has seq %d and pos %d", i, e.Seq, e.Pos)
		}
	}
}

// rows: ALF-56..59, ALDO-54
func TestSlowReadsFinishInAnyOrderAndResultsKeepTheModelsOrder(t *testing.T) {
	var second sync.WaitGroup
	second.Add(1)
	read := tool.New("read", "Read.", func(_ context.Context, a struct {
		N int `json:"n"`
	}) (string, error) {
		if a.N == 1 {
			second.Wait()
		} else {
			second.Done()
		}
		return fmt.Sprint("read ", a.N), nil
	})
	read.ReadOnly, read.Concurrent = true, true
	_, events := bench{
		tools: []tool.Tool{read},
		turns: []scripted.Turn{{ToolCalls: calls("read", `{"n":1}`, "read", `{"n":2}`)}, {Text: "ok"}},
	}.run(t)
	var finished, listed []string
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ToolResult:
			finished = append(finished, d.Output)
		case event.ToolResults:
			for _, r := range d.Results {
				listed = append(listed, r.CallID[len(r.CallID)-1:])
			}
		}
	}
	if !slices.Equal(finished, []string{"read 2", "read 1"}) || !slices.Equal(listed, []string{"1", "2"}) {
		t.Errorf("finished %v, listed %v", finished, listed)
	}
}
