package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// rows: ALDO-1, ALDO-38..46, ALF-1, ALF-3, HAR-2, HAR-3, HAR-25
func TestACycleJournalsItsEventsInTheDeclaredOrder(t *testing.T) {
	echo := tool.New("echo", "Say it again.", func(_ context.Context, a struct {
		Text string `json:"text"`
	}) (string, error) {
		return "you said " + a.Text, nil
	})
	r := newRig(t).tools(echo).turns(
		scripted.Turn{Text: "let me echo", ToolCalls: calls("echo", `{"text":"hi"}`)},
		scripted.Turn{Text: "done", Expect: &scripted.Expectation{Last: []string{"you said hi"}}},
	)
	run := r.start(t.Context())
	events, outcome := drain(t, run, false), outcome(t, run)
	want := []string{
		"run.started",
		"cycle.start", "budget.reserved", "model.requested", "model.response", "budget.committed",
		"tool_call", "policy.decision", "tool.started", "tool_result", "tool.results",
		"cycle.start", "budget.reserved", "model.requested", "model.response", "budget.committed",
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
		if d, ok := e.Data.(event.ToolResults); ok && (d.Cycle != 1 || e.Cycle != 1 || len(d.Results) != 1) {
			t.Errorf("the results of cycle 1 say cycle %d, in an event of cycle %d: %+v", d.Cycle, e.Cycle, d.Results)
		}
	}
}

// rows: ALDO-38..44, ALDO-51..55, ALF-71, HAR-15
func TestACycleTellsAllOfWhatWasAskedAndWhatCame(t *testing.T) {
	lookUp := func(name string, run func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
		look := tool.New(name, "Look it up.", func(context.Context, struct {
			Name string `json:"name" jsonschema:"whom to look up"`
		}) (string, error) {
			return "", nil
		})
		look.Run = run
		return look
	}
	r := newRig(t).tools(
		lookUp("fine", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: "here"}, nil }),
		lookUp("lost", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("no such row") }),
		lookUp("sorry", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Output: "the database is closed", IsError: true}, nil
		}))
	r.cfg.Limits.MaxCycles = 7
	var asked []llm.Request
	r.model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		asked = append(asked, *req)
		if len(asked) > 1 {
			return &llm.Response{Parts: llm.Parts{llm.Text{Text: "done"}}, Finish: llm.FinishEnd, Usage: llm.Usage{Input: 40, Output: 1}}, nil
		}
		resp := &llm.Response{Parts: llm.Parts{llm.Text{Text: "I look."}}, Finish: llm.FinishEnd, Usage: llm.Usage{Input: 20, CacheRead: 5, Output: 9, Reasoning: 3}}
		for _, name := range []string{"lost", "fine", "sorry"} {
			resp.Parts = append(resp.Parts, llm.ToolCall{Name: name, Args: json.RawMessage(`{"name":"Ann"}`)})
		}
		return resp, nil
	}))
	run := r.start(t.Context())
	if o := outcome(t, run); !o.OK || o.FinalOutput != "done" || len(asked) != 2 {
		t.Fatalf("%d requests, outcome %+v", len(asked), o)
	}

	id := func(n int) string { return fmt.Sprintf("%s-1-%d", run.ID, n) }
	args := json.RawMessage(`{"name":"Ann"}`)
	conversation := []*llm.Message{
		llm.UserText("do it"),
		{Role: llm.RoleAssistant, Origin: "test/model", Parts: llm.Parts{
			llm.Text{Text: "I look."},
			llm.ToolCall{CallID: id(1), Name: "lost", Args: args},
			llm.ToolCall{CallID: id(2), Name: "fine", Args: args},
			llm.ToolCall{CallID: id(3), Name: "sorry", Args: args},
		}},
		{Role: llm.RoleTool, Parts: llm.Parts{
			llm.ToolResult{CallID: id(1), Name: "lost", Output: `{"error":"no such row","type":"tool_error"}`, IsError: true},
			llm.ToolResult{CallID: id(2), Name: "fine", Output: "here"},
			llm.ToolResult{CallID: id(3), Name: "sorry", Output: "the database is closed", IsError: true},
		}},
	}
	for i, want := range [][]*llm.Message{conversation[:1], conversation} {
		if diff := cmp.Diff(want, asked[i].Messages); diff != "" {
			t.Errorf("the conversation of request %d:\n%s", i+1, diff)
		}
		if diff := cmp.Diff(r.env.Tools.Defs(), asked[i].Tools); diff != "" || !strings.Contains(string(asked[i].Tools[0].Schema), "whom to look up") {
			t.Errorf("the tools of request %d:\n%s", i+1, diff)
		}
	}

	var opened []event.CycleStart
	var answers []event.ModelResponse
	failed := map[string]bool{}
	for _, e := range r.whole(run.ID) {
		switch d := e.Data.(type) {
		case event.CycleStart:
			opened = append(opened, d)
		case event.ModelResponse:
			answers = append(answers, d)
		case event.ToolResult:
			failed[d.Tool] = d.IsError
		}
	}
	if diff := cmp.Diff([]event.CycleStart{{Cycle: 1, MaxCycles: 7}, {Cycle: 2, MaxCycles: 7}}, opened); diff != "" {
		t.Error(diff)
	}
	want := []event.ModelResponse{
		{Cycle: 1, TextLength: 7, FinishReason: llm.FinishEnd, Usage: llm.Usage{Input: 20, CacheRead: 5, Output: 9, Reasoning: 3},
			ToolCalls: []event.CallRef{{CallID: id(1), Tool: "lost"}, {CallID: id(2), Tool: "fine"}, {CallID: id(3), Tool: "sorry"}}},
		{Cycle: 2, TextLength: 4, FinishReason: llm.FinishEnd, Usage: llm.Usage{Input: 40, Output: 1}, ToolCalls: []event.CallRef{}},
	}
	if diff := cmp.Diff(want, answers, cmpopts.IgnoreFields(event.ModelResponse{}, "Attempt", "Model", "Cost", "Parts")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"lost": true, "fine": false, "sorry": true}, failed); diff != "" {
		t.Error(diff)
	}
}

// rows: ALF-56..59, ALDO-54
func TestSlowReadsFinishInAnyOrderAndResultsKeepTheModelsOrder(t *testing.T) {
	// The first read returns only once the second's result is in the journal.
	settled := make(chan struct{})
	read := tool.New("read", "Read.", func(_ context.Context, a struct {
		N int `json:"n"`
	}) (string, error) {
		if a.N == 1 {
			<-settled
		}
		return fmt.Sprint("read ", a.N), nil
	})
	read.ReadOnly, read.Concurrent = true, true
	r := newRig(t).tools(read).turns(
		scripted.Turn{ToolCalls: calls("read", `{"n":1}`, "read", `{"n":2}`)}, scripted.Turn{Text: "ok"})
	var finished, listed []string
	for e, err := range r.start(t.Context()).Events(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			finished = append(finished, d.Output)
			if len(finished) == 1 {
				close(settled)
			}
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
