package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// answering is a run in which a model answers, once a person has allowed it.
type answering struct {
	present
	mu      sync.Mutex
	allowed map[string]bool
	asked   []tool.Sampling
	answer  tool.Sampled
	err     error
}

func (a *answering) Ask(ctx context.Context, f event.Form) (event.FormAnswer, error) {
	given, err := a.present.Ask(ctx, f)
	if err == nil && f.Consent != "" {
		a.allow(f.Consent, true)
	}
	return given, err
}

func (a *answering) allow(consent string, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed = map[string]bool{consent: is}
}

func (a *answering) Allowed(consent string) (allowed, decided bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	allowed, decided = a.allowed[consent]
	return allowed, decided
}

func (a *answering) Sample(_ context.Context, s tool.Sampling) (tool.Sampled, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, s)
	return a.answer, a.err
}

func sampling(o mcp.Options) mcp.Options {
	o.Sampling = &mcp.Sampling{Agent: "docs.sampling", Model: "test/small", USD: 0.1}
	return o
}

// try makes an attempt in a run.
func try(t *testing.T, s *mcp.Server, name string, attempt int, run tool.Run, in *event.FormAnswer) (tool.Result, error) {
	t.Helper()
	return find(t, s, name).Run(t.Context(), tool.Call{ID: "c1", Key: "key-1", Attempt: attempt, Args: json.RawMessage(`{"text":"Why?"}`), Run: run, Input: in})
}

// The first request of a run ends the attempt with a question, and after consent models
// answer the server, in this call and in later ones.
func TestSamplingAsksForConsentOnce(t *testing.T) {
	w := newWorld(t)
	s := connect(t, sampling(w.options("ledger")))
	run := &answering{answer: tool.Sampled{Text: "Because STOP not"}}
	_, err := try(t, s, "docs.sampletwice", 1, run, nil)
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || needs.Form.Consent != "docs.sampling" || !strings.Contains(needs.Form.Message, "test/small") || !strings.Contains(needs.Form.Message, "USD 0.1") {
		t.Fatalf("it asks %v", err)
	}
	if err := tool.CheckForm(needs.Form); err != nil {
		t.Fatal(err)
	}
	run.allow("docs.sampling", true)
	r, err := try(t, s, "docs.sampletwice", 2, run, gives(needs.Form, `{}`))
	if err != nil || !strings.Contains(r.Output, `"text":"Because "`) || !strings.Contains(r.Output, `"stopReason":"stopSequence"`) || !strings.Contains(r.Output, `"model":"test/small"`) {
		t.Fatalf("%+v, %v", r, err)
	}
	if len(run.asked) != 2 || run.asked[0].Messages[0].Text != "Why?" || run.asked[1].Messages[0].Text != "And then?" || run.asked[0].System != "Be brief." || run.asked[0].MaxTokens != 100 || run.asked[0].USD != 0.1 {
		t.Errorf("the model is asked %+v", run.asked)
	}
	if r, err := try(t, s, "docs.sample", 1, run, nil); err != nil || r.IsError || len(run.asked) != 3 {
		t.Errorf("another call: %+v, %v", r, err)
	}
	if calls := w.ledger(t, "call"); len(calls) != 3 || calls[0] != calls[1] {
		t.Errorf("the calls are %q", calls)
	}
}

// At a terminal the consent is given during the call, so there is one attempt.
func TestSamplingGoesOnWithAPersonPresent(t *testing.T) {
	w := newWorld(t)
	s := connect(t, sampling(w.options("ledger")))
	run := &answering{present: present{[]string{`{}`}}, answer: tool.Sampled{Text: "Half", Cut: true}}
	r, err := try(t, s, "docs.sample", 1, run, nil)
	if err != nil || !strings.Contains(r.Output, `"stopReason":"maxTokens"`) || len(w.ledger(t, "call")) != 1 {
		t.Errorf("%+v, %v after %q", r, err, w.ledger(t, "call"))
	}
}

// The server gets an error that says why no model answers.
func TestSamplingThatIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		allowed bool
		err     error
		want    string
	}{
		"declined": {false, nil, `"code":-1,`},
		"no money": {true, errors.New("the limit of USD 0.1 has no room"), "has no room"},
	} {
		w := newWorld(t)
		s := connect(t, sampling(w.options("ledger")))
		run := &answering{err: tt.err}
		run.allow("docs.sampling", tt.allowed)
		if r, err := try(t, s, "docs.sampletwice", 1, run, nil); err != nil || !strings.Contains(r.Output, tt.want) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// A consent does not answer other questions of the call, and holds while they are open.
func TestSamplingBesideAQuestion(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		w := newWorld(t)
		s := connect(t, sampling(w.options("ledger")))
		run := &answering{answer: tool.Sampled{Text: "Ann"}}
		_, err := try(t, s, "docs.sampleask", 1, run, nil)
		consent, is := errors.AsType[*tool.InputRequired](err)
		if !is {
			t.Fatalf("it asks %v", err)
		}
		run.allow("docs.sampling", allowed)
		answer := gives(consent.Form, `{}`)
		if !allowed {
			answer = declines(consent.Form)
		}
		_, err = try(t, s, "docs.sampleask", 2, run, answer)
		name, is := errors.AsType[*tool.InputRequired](err)
		if !is || name.Form.Message != "Your name?" || name.Form.Consent != "" {
			t.Fatalf("allowed %t: it asks %v", allowed, err)
		}
		r, err := try(t, s, "docs.sampleask", 3, run, gives(name.Form, `{"name":"Lee"}`))
		if err != nil || !strings.Contains(r.Output, `"Lee"`) || len(w.ledger(t, "call")) != 3 {
			t.Errorf("allowed %t: %+v, %v", allowed, r, err)
		}
	}
}

// Without the key a server that asks has an error, and the client does not offer it.
func TestSamplingIsOffByDefault(t *testing.T) {
	w := newWorld(t)
	run := &answering{}
	run.allow("docs.sampling", true)
	s := connect(t, w.options("ledger"))
	if r, err := try(t, s, "docs.sample", 1, run, nil); err != nil || !strings.Contains(r.Output, "does not support") || len(run.asked) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	s = connect(t, w.options("sdk"))
	if _, err := try(t, s, "docs.think", 1, run, nil); err == nil || !strings.Contains(err.Error(), "the key sampling") || len(run.asked) != 0 {
		t.Errorf("in a result: %v", err)
	}
}

// A result that asks for the answer of a model has it in the next request. The question
// about that keeps the request, so another process can answer it.
func TestSamplingInAResult(t *testing.T) {
	w := newWorld(t)
	first := connect(t, sampling(w.options("sdk")))
	run := &answering{answer: tool.Sampled{Text: "Sleep."}}
	_, err := try(t, first, "docs.think", 1, run, nil)
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || needs.Form.Consent != "docs.sampling" {
		t.Fatalf("it asks %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s := mcp.Resume(sampling(w.options("sdk")), first.Pin())
	t.Cleanup(func() { _ = s.Close() })
	run.allow("docs.sampling", true)
	for range 2 {
		r, err := try(t, s, "docs.think", 2, run, gives(needs.Form, `{}`))
		if err != nil || r.Output != "state-1: Sleep. of test/small, endTurn" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if r, err := try(t, s, "docs.think", 1, run, nil); err != nil || r.Output != "state-1: Sleep. of test/small, endTurn" || len(run.asked) != 3 {
		t.Errorf("another call: %+v, %v", r, err)
	}
	run.allow("docs.sampling", false)
	_, err = try(t, s, "docs.think", 2, run, gives(needs.Form, `{}`))
	if kind, _ := kindOf(err); kind != event.ErrorRejected {
		t.Errorf("declined: %v", err)
	}
}
