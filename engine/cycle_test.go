package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
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
