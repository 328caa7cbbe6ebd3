package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// answersFirst gives these parts, then a final answer.
func answersFirst(parts ...llm.Part) modelFunc {
	return func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		if req.Ordinal > 0 {
			return said("done"), nil
		}
		return &llm.Response{Parts: parts, Usage: llm.Usage{Input: 7, Output: 3}}, nil
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// encoding/json writes 10,000 levels of what it is given and the event around
// them, and then does not read them.
func TestArgumentsAreNeverNestedDeeperThanAJournalIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := false
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { called = true; return "", nil })).
			model(answersFirst(llm.ToolCall{Name: "work", Args: json.RawMessage(`{"x":` + nested(9_998) + `}`)}))
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		res := results(r.whole(run.ID))
		if len(res) != 1 || res[0].ErrorType != event.ErrorInvalidArgs || !strings.Contains(res[0].Output, "nested deeper than 256 levels") || called {
			t.Errorf("called: %t, results %+v", called, res)
		}
	})
}

func TestInvalidAnswerIsChargedAsAdapterFailure(t *testing.T) {
	for name, c := range map[string]struct {
		part llm.Part
		says string
	}{
		"nothing":                   {nil, "part 2 is <nil>"},
		"a pointer":                 {&llm.Text{Text: "hello"}, "part 2 is *llm.Text"},
		"a result":                  {llm.ToolResult{CallID: "c", Output: "forged"}, "part 2 is the result of a call"},
		"a raw form that is broken": {llm.Item{Raw: json.RawMessage(`{`)}, "part 2 has a raw form that is no JSON"},
		"a text's broken raw form":  {llm.Text{Text: "hello", Raw: json.RawMessage(`nope`)}, "part 2 has a raw form that is no JSON"},
		"a raw form that is deep":   {llm.Reasoning{Raw: json.RawMessage(nested(9_998))}, "nested deeper than 1000 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).model(answersFirst(llm.Text{Text: "so far"}, c.part))
				run := r.start(t.Context())
				o := outcome(t, run)
				if o.Reason != event.ReasonModelError || o.Error == nil || !strings.Contains(o.Error.Message, c.says) {
					t.Errorf("outcome %+v, error %+v", o, o.Error)
				}
				if o.Usage.Input != 7 || o.Usage.Output != 3 {
					t.Errorf("used %+v", o.Usage)
				}
				r.whole(run.ID)
			})
		})
	}
}

func TestARawFormMayHoldBracketsInItsTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := json.RawMessage(`{"text":"\"` + strings.Repeat("[{", 2_000) + `"}`)
		r := newRig(t).model(answersFirst(llm.Text{Text: "done", Raw: raw}))
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v, error %+v", o, o.Error)
		}
		r.whole(run.ID)
	})
}

func TestEditMayNotMakeJournalUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := argsRig(t)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		err := r.Send(t.Context(), journal.Command{
			Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: json.RawMessage(`{"to":` + nested(9_998) + `}`),
		})
		if err == nil || !strings.Contains(err.Error(), "the arguments for call "+run.ID+"-1-1 are nested deeper than 1000 levels") {
			t.Errorf("error %.200v", err)
		}
		r.journal(run.ID)
	})
}

func TestAnAnswerOfWhoIsAskedThatAJournalIsNotReadWithIsNone(t *testing.T) {
	r, got := argsRig(t)
	run := r.asker(func(context.Context, event.Question) (event.Resolution, error) {
		return event.Resolution{Kind: event.ApprovalEdited, Args: json.RawMessage(`{"to":` + nested(9_998) + `}`), Approver: "ann"}, nil
	}).start(t.Context())
	parkedAs(t, run, event.ParkApproval)
	if s := wait(t, run); !strings.Contains(s.Parked.Detail, "nested deeper than 1000 levels") || *got != "" {
		t.Errorf("ran with %.100q, parked %+v", *got, s.Parked)
	}
	r.journal(run.ID)
}

func TestAnswerWithTooManyCallsIsAdapterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := make(llm.Parts, 257)
		for i := range parts {
			parts[i] = llm.ToolCall{Name: "work", Args: json.RawMessage(`{}`)}
		}
		r := newRig(t).tools(toolFunc("work", well)).model(answersFirst(parts...))
		run := r.start(t.Context())
		if o := outcome(t, run); o.Reason != event.ReasonModelError || !strings.Contains(o.Error.Message, "more than 256 calls") {
			t.Errorf("outcome %+v, error %+v", o, o.Error)
		}
		r.whole(run.ID)
	})
}
