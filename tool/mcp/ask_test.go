package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// asked makes an attempt that must end with a question, which must be one that can be
// asked.
func asked(t *testing.T, s *mcp.Server, name, args string, attempt int, in *event.FormAnswer) event.Form {
	t.Helper()
	_, err := find(t, s, name).Run(t.Context(), tool.Call{ID: "c1", Key: "key-1", Attempt: attempt, Args: json.RawMessage(args), Input: in})
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is {
		t.Fatalf("%s asks nothing: %v", name, err)
	}
	if err := tool.CheckForm(needs.Form); err != nil {
		t.Fatal(err)
	}
	return needs.Form
}

// finish makes an attempt that must have a result.
func finish(t *testing.T, s *mcp.Server, name, args string, attempt int, in *event.FormAnswer) tool.Result {
	t.Helper()
	r, err := find(t, s, name).Run(t.Context(), tool.Call{ID: "c1", Key: "key-1", Attempt: attempt, Args: json.RawMessage(args), Input: in})
	if err != nil {
		t.Fatalf("attempt %d at %s: %v", attempt, name, err)
	}
	return r
}

func gives(f event.Form, input string) *event.FormAnswer {
	return &event.FormAnswer{Kind: event.ApprovalAnswered, Input: json.RawMessage(input), State: f.State}
}

func declines(f event.Form) *event.FormAnswer {
	return &event.FormAnswer{Kind: event.ApprovalRejected, Reason: "no", State: f.State}
}

// again is the server of a new process for the same run.
func again(t *testing.T, w *world, first *mcp.Server, kind string, more ...string) *mcp.Server {
	t.Helper()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s := mcp.Resume(w.options(kind, more...), first.Pin())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A server that asks while a call is under way has the answer in a second call with the
// same key, in another process.
func TestRequestForInputEndsTheAttempt(t *testing.T) {
	w := newWorld(t)
	first := connect(t, w.options("ledger"))
	f := asked(t, first, "docs.ask", `{"text":"Your name?"}`, 1, nil)
	if f.Message != "Your name?" || !strings.Contains(string(f.Schema), `"title":"Name"`) {
		t.Errorf("it asks %+v", f)
	}
	s := again(t, w, first, "ledger")
	if r := finish(t, s, "docs.ask", `{"text":"Your name?"}`, 2, gives(f, `{"name":"Ann"}`)); r.IsError || r.Output != `{"action":"accept","content":{"name":"Ann"}}` {
		t.Errorf("the result is %+v", r)
	}
	if calls := w.ledger(t, "call"); len(calls) != 2 || calls[0] != calls[1] || !strings.Contains(calls[0], "key-1") {
		t.Errorf("the calls are %q", calls)
	}
	// What another call is asked is no question that was answered.
	if f := asked(t, s, "docs.ask", `{"text":"Your name?"}`, 1, nil); f.Message != "Your name?" {
		t.Errorf("it asks %+v", f)
	}
}

func TestDeclinedInputIsDeclinedToTheServer(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	f := asked(t, s, "docs.ask", `{"text":"Your name?"}`, 1, nil)
	if r := finish(t, s, "docs.ask", `{"text":"Your name?"}`, 2, declines(f)); r.Output != `{"action":"decline"}` {
		t.Errorf("the result is %+v", r)
	}
}

// Two questions are two waits and three calls; the first answer is kept.
func TestTwoRequestsForInput(t *testing.T) {
	w := newWorld(t)
	first := connect(t, w.options("ledger"))
	f := asked(t, first, "docs.asktwice", `{"text":"Your name?"}`, 1, nil)
	f = asked(t, first, "docs.asktwice", `{"text":"Your name?"}`, 2, gives(f, `{"name":"Ann"}`))
	if f.Message != "And the family name?" {
		t.Errorf("it asks %+v", f)
	}
	s := again(t, w, first, "ledger")
	if r := finish(t, s, "docs.asktwice", `{"text":"Your name?"}`, 3, gives(f, `{"name":"Lee"}`)); !strings.Contains(r.Output, `"Lee"`) {
		t.Errorf("the result is %+v", r)
	}
	answers := w.ledger(t, "answer")
	if len(w.ledger(t, "call")) != 3 || strings.Count(strings.Join(answers, "\n"), `"Ann"`) != 2 {
		t.Errorf("the answers are %q", answers)
	}
}

// An answer is to what was asked: another question is asked again.
func TestAnswerIsNotGivenToAnotherQuestion(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	f := asked(t, s, "docs.ask", `{"text":"Delete a?"}`, 1, nil)
	if f = asked(t, s, "docs.ask", `{"text":"Delete b?"}`, 2, gives(f, `{"name":"yes"}`)); f.Message != "Delete b?" {
		t.Errorf("it asks %+v", f)
	}
}

// The page that a server names is shown with its host.
func TestRequestToOpenAPage(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for name, want := range map[string]string{"docs.askpage": `{"action":"accept"}`, "docs.needpage": "paid"} {
		f := asked(t, s, name, `{}`, 1, nil)
		if f.URL != "https://pay.example.com/1" || f.Host() != "pay.example.com" || f.Schema != nil {
			t.Errorf("%s asks %+v", name, f)
		}
		if r := finish(t, s, name, `{}`, 2, gives(f, `{}`)); r.Output != want {
			t.Errorf("the result of %s is %+v", name, r)
		}
	}
}

func TestDeclinedPageIsTheEndOfTheCall(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	f := asked(t, s, "docs.needpage", `{"text":"never"}`, 1, nil)
	_, err := find(t, s, "docs.needpage").Run(t.Context(), tool.Call{ID: "c1", Key: "key-1", Attempt: 2, Args: json.RawMessage(`{"text":"never"}`), Input: declines(f)})
	if kind, _ := kindOf(err); kind != event.ErrorRejected {
		t.Errorf("the error is %v", err)
	}
}

// A result that needs several answers has them asked one after the other, in one more
// call.
func TestResultThatNeedsInput(t *testing.T) {
	w := newWorld(t)
	first := connect(t, w.options("sdk"))
	f := asked(t, first, "docs.ask", `{}`, 1, nil)
	if f.Message != "Your name?" || strings.Contains(string(f.Schema), "state-1") {
		t.Errorf("it asks %+v", f)
	}
	s := again(t, w, first, "sdk")
	f = asked(t, s, "docs.ask", `{}`, 2, gives(f, `{"name":"Ann"}`))
	if f.Message != "Your age?" {
		t.Errorf("it asks %+v", f)
	}
	if calls := w.ledger(t, "call"); len(calls) != 1 {
		t.Errorf("the calls are %q", calls)
	}
	if r := finish(t, s, "docs.ask", `{}`, 3, declines(f)); r.Output != "state-1: name accept map[name:Ann], age decline map[]" {
		t.Errorf("the result is %+v", r)
	}
	if calls := w.ledger(t, "call"); len(calls) != 2 {
		t.Errorf("the calls are %q", calls)
	}
}

func TestRootsAreTheDirectoriesThatWereGiven(t *testing.T) {
	w := newWorld(t)
	o := w.options("ledger")
	o.Roots = []string{"/work/a b"}
	if r := finish(t, connect(t, o), "docs.roots", `{}`, 1, nil); !strings.Contains(r.Output, `"uri":"file:///work/a%20b"`) {
		t.Errorf("the roots are %+v", r)
	}
	o.Roots = nil
	if r := finish(t, connect(t, o), "docs.roots", `{}`, 1, nil); strings.Contains(r.Output, "file:") {
		t.Errorf("the roots are %+v", r)
	}
}

// present is a run with a person who answers at once.
type present struct{ answers []string }

func (*present) Keep(context.Context, json.RawMessage) error { return nil }

func (*present) Report(float64, float64, string) {}
func (*present) Print([]byte)                    {}

func (*present) Allowed(string) (bool, bool) { return false, false }

func (*present) Sample(context.Context, tool.Sampling) (tool.Sampled, error) {
	return tool.Sampled{}, errors.New("no model is there")
}

func (p *present) Ask(_ context.Context, f event.Form) (event.FormAnswer, error) {
	if len(p.answers) == 0 {
		return event.FormAnswer{}, &tool.InputRequired{Form: f}
	}
	a := event.FormAnswer{Kind: event.ApprovalAnswered, Input: json.RawMessage(p.answers[0]), State: f.State}
	p.answers = p.answers[1:]
	return a, nil
}

// A person who is there answers the request itself, and the call is made once. What they
// leave open is asked in the next attempt, which has the first answer as well.
func TestRequestForInputIsAnsweredAtOnce(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	c := tool.Call{ID: "c1", Key: "key-1", Attempt: 1, Args: json.RawMessage(`{"text":"Your name?"}`), Run: &present{[]string{`{"name":"Ann"}`, `{"name":"Lee"}`}}}
	r, err := find(t, s, "docs.asktwice").Run(t.Context(), c)
	if err != nil || !strings.Contains(r.Output, `"Lee"`) || len(w.ledger(t, "call")) != 1 {
		t.Errorf("the result is %+v, %v after %q", r, err, w.ledger(t, "call"))
	}
	c.Run = &present{[]string{`{"name":"Ann"}`}}
	_, err = find(t, s, "docs.asktwice").Run(t.Context(), c)
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || needs.Form.Message != "And the family name?" {
		t.Fatalf("it asks %v", err)
	}
	c.Run, c.Attempt, c.Input = &present{}, 2, gives(needs.Form, `{"name":"Day"}`)
	r, err = find(t, s, "docs.asktwice").Run(t.Context(), c)
	if err != nil || !strings.Contains(r.Output, `"Day"`) || len(w.ledger(t, "call")) != 3 {
		t.Errorf("the result is %+v, %v after %q", r, err, w.ledger(t, "call"))
	}
}
