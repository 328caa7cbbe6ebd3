package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// say puts events through a vocabulary and gives the lines that come out.
func say(t *testing.T, words string, data ...event.Data) []string {
	t.Helper()
	var out bytes.Buffer
	v := &wordsView{out: &out, words: vocabularies()[words]()}
	for i, d := range data {
		if err := v.show(event.Event{Seq: int64(i + 1), Run: "r1", Time: time.Unix(0, 0).UTC(), Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.end(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func answer(text string) event.ModelResponse {
	return event.ModelResponse{Cycle: 1, TextLength: len(text), FinishReason: llm.FinishEnd, Parts: event.Answer{llm.Text{Text: text}}, ToolCalls: []event.CallRef{}}
}

func ended(o event.Outcome) event.RunCompleted { return event.RunCompleted{Outcome: o} }

// rows: ALF-17..20, ALF-22
func TestAlfredViewHasTextToolsAndRetries(t *testing.T) {
	got := say(t, "alfred",
		event.RunStarted{Name: "x"},
		event.ModelRetrying{Attempt: 2, DelayMs: 210, Reason: "overloaded", FromModel: "a/b", ToModel: "a/b"},
		event.Text{Text: "Let me "}, event.Text{Text: ""}, event.Text{Text: "look."}, answer("Let me look."),
		event.ToolCall{CallID: "r1-1-1", Tool: "fs.read", Args: json.RawMessage(`{"path":"a"}`), Describe: "read a"},
		event.ToolResult{CallID: "r1-1-1", Tool: "fs.read", Output: "<hi>", IsError: false},
		event.ToolResult{CallID: "r1-1-2", Tool: "fs.read", Output: "gone", IsError: true},
		ended(event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer}),
	)
	want := []string{
		`{"type":"retrying","attempt":2,"delayMs":210,"reason":"overloaded"}`,
		`{"type":"text","text":"Let me "}`,
		`{"type":"text","text":"look."}`,
		`{"type":"tool_use","id":"r1-1-1","name":"fs.read","describe":"read a","input":{"path":"a"}}`,
		`{"type":"tool_result","id":"r1-1-1","name":"fs.read","output":"<hi>","isError":false}`,
		`{"type":"tool_result","id":"r1-1-2","name":"fs.read","output":"gone","isError":true}`,
		`{"type":"done","status":"success"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a tool has no label for, the model's own arguments stand for, which may
// be a whole file.
//
// rows: ALF-18
func TestAlfredDescribesACallInAFewWordsWhateverItsArguments(t *testing.T) {
	for _, tt := range []struct {
		name string
		call event.ToolCall
		want string
	}{
		{"no arguments", event.ToolCall{Tool: "now"}, "now"},
		{"short ones", event.ToolCall{Tool: "say", Args: json.RawMessage(`{"text":"hi"}`)}, `say {"text":"hi"}`},
		{"on many lines", event.ToolCall{Tool: "say", Args: json.RawMessage("{\n\t\"text\": \"hi\"\n}")}, `say { "text": "hi" }`},
		{"a whole file", event.ToolCall{Tool: "say", Args: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}, `say "` + strings.Repeat("x", 194) + "…"},
		{"no JSON, and words for the terminal", event.ToolCall{Tool: "say", ArgsText: "{\x1b[2J\u202e"}, harmless("say {\x1b[2J\u202e")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.call.CallID = "r1-1-1"
			var o struct{ Describe string }
			if err := json.Unmarshal([]byte(say(t, "alfred", tt.call)[0]), &o); err != nil {
				t.Fatal(err)
			}
			if o.Describe != tt.want {
				t.Errorf("%.200q, want %q", o.Describe, tt.want)
			}
		})
	}
}

func TestAnswerIsShownOnceStreamedOrNot(t *testing.T) {
	tests := []struct {
		name string
		in   []event.Data
		want string
	}{
		{"whole", []event.Data{answer("hello")}, "hello"},
		{"streamed", []event.Data{event.Text{Text: "hel"}, event.Text{Text: "lo"}, answer("hello")}, "hel|lo"},
		{"its end was missed", []event.Data{event.Text{Text: "hel"}, answer("hello")}, "hel|lo"},
		{"its middle was missed", []event.Data{event.Text{Text: "he"}, event.Text{Text: "o"}, answer("hello")}, "he|o"},
		{"after a broken attempt", []event.Data{event.Text{Text: "by"}, event.TextReset{}, answer("hello")}, "by|hello"},
		{"two answers", []event.Data{answer("a"), event.Text{Text: "b"}, answer("b")}, "a|b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var heard []string
			for _, line := range say(t, "alfred", tt.in...) {
				var o struct{ Type, Text string }
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				if o.Type == "text" {
					heard = append(heard, o.Text)
				}
			}
			if got := strings.Join(heard, "|"); got != tt.want {
				t.Errorf("heard %q, want %q", got, tt.want)
			}
		})
	}
}

// rows: ALDO-28
func TestAldoViewHasEveryCompression(t *testing.T) {
	got := say(t, "aldo",
		event.HistoryCompressed{Strategy: "rolling-window", Dropped: 3, Kept: 5},
		event.HistoryCompressed{Strategy: "periodic-summary", Dropped: 7, Kept: 2},
	)
	if len(got) != 2 {
		t.Fatalf("%d lines for 2 compressions: %q", len(got), got)
	}
	for i, want := range []string{`"dropped":3,"kept":5`, `"dropped":7,"kept":2`} {
		var o struct{ Type string }
		if err := json.Unmarshal([]byte(got[i]), &o); err != nil || o.Type != "history.compressed" || !strings.Contains(got[i], want) {
			t.Errorf("%s, want history.compressed with %s (%v)", got[i], want, err)
		}
	}
}

// rows: ALF-15, ALF-16, ALF-21..25, ALF-43
func TestAlfredsLoopIsDoneExactlyOnceOnEveryPath(t *testing.T) {
	failed := event.Outcome{Status: event.StatusFailed, Reason: event.ReasonModelError, Error: &event.Failure{Message: "no such model"}}
	tests := []struct {
		name  string
		end   []event.Data
		error string
		done  string
	}{
		{"final answer", []event.Data{ended(event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer})}, "", "success"},
		{"condition", []event.Data{ended(event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonConditionMet})}, "", "success"},
		{"condition on the budget", []event.Data{ended(event.Outcome{Status: event.StatusStopped, Reason: event.ReasonConditionMet, Kind: "budget-exhausted", Limit: "usd_per_run", OK: true})}, "stopped: condition_met (budget-exhausted)", "max_turns"},
		{"no answer and no call", []event.Data{ended(event.Outcome{Status: event.StatusStopped, Reason: event.ReasonNoAnswerOrCall})}, "", "success"},
		{"repeated failure", []event.Data{ended(event.Outcome{Status: event.StatusFailed, Reason: event.ReasonRepeatedFailure})}, "stopped: repeated_failure", "max_turns"},
		{"turn limit", []event.Data{ended(event.Outcome{Status: event.StatusStopped, Reason: event.ReasonMaxCycles, Cycles: 3})}, "the limit of 3 turns is reached", "max_turns"},
		{"budget", []event.Data{ended(event.Outcome{Status: event.StatusStopped, Reason: "budget:usd_per_run", Limit: "usd_per_run"})}, "stopped: budget:usd_per_run", "max_turns"},
		{"stuck", []event.Data{ended(event.Outcome{Status: event.StatusStopped, Reason: event.ReasonStuck})}, "stopped: stuck", "max_turns"},
		{"model error", []event.Data{ended(failed)}, "no such model", "provider_error"},
		{"cancelled", []event.Data{ended(event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled})}, "", "aborted"},
		{"internal", []event.Data{ended(event.Outcome{Status: event.StatusFailed, Reason: event.ReasonInternal})}, "stopped: internal", "provider_error"},
		{"parked", []event.Data{event.RunParked{Reason: event.ParkInterrupted}}, "", "aborted"},
		{"parked, resumed, ended", []event.Data{event.RunParked{}, event.RunResumed{}, ended(failed)}, "no such model", "provider_error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := []string{`{"type":"done","status":"` + tt.done + `"}`}
			if tt.error != "" {
				want = append([]string{`{"type":"error","message":"` + tt.error + `"}`}, want...)
			}
			if diff := cmp.Diff(want, say(t, "alfred", tt.end...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAldoViewHasItsNamesAndOneTerminalEvent(t *testing.T) {
	index := 1
	got := say(t, "aldo",
		event.CycleStart{Cycle: 1, MaxCycles: 30},
		event.ModelRequested{Attempt: 1, Model: "a/b"},
		answer("hi"),
		event.ToolCall{CallID: "c", Tool: "shell.exec", Args: json.RawMessage(`{}`)},
		event.ToolPendingApproval{CallID: "c", Tool: "shell.exec", Args: json.RawMessage(`{}`), Digest: "d", Reason: "gated"},
		event.ToolApprovalResolved{CallID: "c", Kind: event.ApprovalApproved, Approver: "ann"},
		event.ToolResult{CallID: "c", Tool: "shell.exec", Output: "ok"},
		event.ToolResults{Cycle: 1, Results: []event.ResultRef{{CallID: "c", Tool: "shell.exec"}}},
		event.Nudge{Kind: event.NudgeNoToolCall, Text: "go on"},
		event.RunTerminatedBy{Reason: event.ReasonConditionMet, Kind: "tool-result", Index: &index},
		ended(event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonConditionMet, Kind: "tool-result", OK: true, Cycles: 1, FinalOutput: "hi"}),
	)
	const head = `"runId":"r1","at":"1970-01-01T00:00:00Z"`
	want := []string{
		`{"type":"cycle.start",` + head + `,"cycle":1,"maxCycles":30}`,
		`{"type":"model.response",` + head + `,"cycle":1,"textLength":2,"text":"hi","toolCalls":[],"finishReason":"end","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"reasoning":0}}`,
		`{"type":"tool_call",` + head + `,"callId":"c","tool":"shell.exec","args":{}}`,
		`{"type":"tool.pending_approval",` + head + `,"callId":"c","tool":"shell.exec","args":{},"reason":"gated"}`,
		`{"type":"tool.approval_resolved",` + head + `,"callId":"c","kind":"approved","approver":"ann"}`,
		`{"type":"tool_result",` + head + `,"callId":"c","tool":"shell.exec","output":"ok","isError":false}`,
		`{"type":"tool.results",` + head + `,"cycle":1,"results":[{"callId":"c","tool":"shell.exec","isError":false}]}`,
		`{"type":"message",` + head + `,"role":"user","text":"go on"}`,
		`{"type":"run.terminated_by",` + head + `,"reason":"tool-result","index":1}`,
		`{"type":"run.completed",` + head + `,"ok":true,"output":"hi","finishReason":"completed","terminatedBy":"tool-result","cycles":1}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAldosTerminalEventSaysHowTheRunEnded(t *testing.T) {
	for _, tt := range []struct {
		outcome        event.Outcome
		event, because string
	}{
		{event.Outcome{Status: event.StatusStopped, Reason: event.ReasonMaxCycles, OK: true}, "run.completed", "maxCycles"},
		{event.Outcome{Status: event.StatusStopped, Reason: "budget:usd_per_run"}, "run.completed", "budget-exhausted"},
		{event.Outcome{Status: event.StatusStopped, Reason: "budget:max_tool_calls"}, "run.completed", "budget:max_tool_calls"},
		{event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled}, "run.cancelled", "cancelled"},
		{event.Outcome{Status: event.StatusFailed, Reason: event.ReasonModelError, Error: &event.Failure{Message: "x"}}, "error", "model_error"},
	} {
		lines := say(t, "aldo", ended(tt.outcome))
		var got struct{ Type, TerminatedBy string }
		if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || len(lines) != 1 {
			t.Fatalf("%v: %v", lines, err)
		}
		if got.Type != tt.event || got.TerminatedBy != tt.because {
			t.Errorf("%s is %+v, want %s by %s", tt.outcome.Reason, got, tt.event, tt.because)
		}
	}
}

func TestRondoViewHasIterationsAndOneTerminalEvent(t *testing.T) {
	got := say(t, "rondo",
		event.RunStarted{},
		event.Text{Text: "try"}, answer("try"),
		event.Iteration{Index: 0, Number: 1, MaxIterations: 10, Output: "tried"},
		event.Progress{Number: 1, Learning: "it is hard"},
		event.ReviewRequested{LoopID: "l1", Number: 1, Output: "tried"},
		ended(event.Outcome{Status: event.StatusStopped, Reason: event.ReasonMaxCycles, Cycles: 7, FinalOutput: "tried"}),
	)
	want := []string{
		`{"type":"agent:status","agentId":"r1","status":"running"}`,
		`{"type":"agent:text","text":"try"}`,
		`{"type":"iteration","iteration":1,"maxIterations":10,"output":"tried"}`,
		`{"type":"progress","iteration":1,"learning":"it is hard"}`,
		`{"type":"manual_approval_required","iteration":1,"output":"tried","loopId":"r1/l1"}`,
		`{"type":"completed","totalIterations":1,"finalOutput":"tried"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	failed := say(t, "rondo", ended(event.Outcome{Status: event.StatusFailed, Reason: event.ReasonModelError, Cycles: 2, Error: &event.Failure{Message: "gone"}}))
	if diff := cmp.Diff([]string{`{"type":"failed","iteration":2,"error":"gone"}`}, failed); diff != "" {
		t.Error(diff)
	}
}
