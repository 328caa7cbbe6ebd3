package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// fails settles a call that runs with an error of a kind.
func (p *play) fails(id string, kind event.ErrorType) {
	p.t.Helper()
	p.result(id, event.ToolResult{IsError: true, ErrorType: kind, Output: agent.ErrorOutput(kind, "it failed")})
}

// batch is an answer with n calls that may run together, failBatch their
// failures, no two alike.
func batch(n int) llm.Response {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprint("get file", i))
	}
	return asks("", calls...)
}

func (p *play) failBatch(cycle, n int) {
	p.t.Helper()
	for i := range n {
		p.fails(fmt.Sprintf("c%d.%d", cycle, i+1), event.ErrorType(fmt.Sprint("kind", i%3)))
	}
}

// ended says why a run ended, "" for one that goes on.
func (p *play) ended() event.Outcome {
	if o := p.live.State().Outcome; o != nil {
		return *o
	}
	return event.Outcome{}
}

// rows: HAR-82..84
func TestWhatHappensToCallsEndsTheRun(t *testing.T) {
	denying := policy.Rules{Declared: true, Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "send", Reason: "no mail"}}}
	threshold := func(n int) agent.Config { return agent.Config{FailureThreshold: n} }
	failing := func(n int, kinds ...event.ErrorType) func(*play) {
		return func(p *play) {
			for i := range n {
				p.answer(asks("", fmt.Sprint("read file", i)))
				p.fails(fmt.Sprintf("c%d.1", i+1), kinds[i%len(kinds)])
			}
		}
	}
	for _, tt := range []struct {
		name   string
		cfg    agent.Config
		play   func(p *play)
		reason event.Reason
		says   string
	}{
		{"a denied call, by default", agent.Config{Policy: denying}, func(p *play) { p.answer(asks("", "send a")) }, "", ""},
		{"a denied call, where the owner stops", agent.Config{Policy: denying, OnDenied: agent.RefusedStop}, func(p *play) {
			p.answer(asks("", "send a", "read b"))
			p.results("c1.2=B")
		}, event.ReasonPolicyDenied, "send was denied: tools.rules: deny send: no mail"},
		{"a denied call that is not the first of its answer", agent.Config{Policy: denying, OnDenied: agent.RefusedStop}, func(p *play) {
			p.answer(asks("", "read a", "read b", "send c"))
			p.results("c1.1=A", "c1.2=B")
		}, event.ReasonPolicyDenied, "send was denied: tools.rules: deny send: no mail"},
		{"a call that only fails with a denial of its own", agent.Config{OnDenied: agent.RefusedStop}, func(p *play) {
			p.answer(asks("", "read a"))
			p.fails("c1.1", event.ErrorDenied)
		}, "", ""},
		{"a rejected call, by default", agent.Config{Policy: gated("send")}, func(p *play) {
			p.answer(asks("", "send a"))
			p.decide("c1.1", event.ApprovalRejected, "too early")
		}, "", ""},
		{"a rejected call, where the owner stops", agent.Config{Policy: gated("send"), OnRejected: agent.RefusedStop}, func(p *play) {
			p.answer(asks("", "send a"))
			p.decide("c1.1", event.ApprovalRejected, "too early")
		}, event.ReasonRejected, "send was rejected by ann: too early"},
		{"a call that nobody decided about", agent.Config{Policy: gated("send"), OnRejected: agent.RefusedStop}, func(p *play) {
			p.answer(asks("", "send a"))
			p.decide("c1.1", event.ApprovalExpired, "")
		}, "", ""},
		{"a condition that the same cycle meets", agent.Config{
			Policy: denying, OnDenied: agent.RefusedStop, Conditions: []stop.Condition{{Kind: stop.TextIncludes, Text: "<done>"}},
		}, func(p *play) { p.answer(asks("<done>", "send a")) }, event.ReasonConditionMet, ""},

		{"a few failures of many kinds, by default", agent.Config{}, failing(6, "one", "two", "three"), "", ""},
		{"nineteen failures of many kinds, by default", agent.Config{}, failing(19, "one", "two", "three"), "", ""},
		{"twenty", agent.Config{}, failing(20, "one", "two", "three"), event.ReasonRepeatedFailure, ""},
		{"twenty, where the owner wants no end", threshold(budget.None), failing(20, "one", "two", "three"), "", ""},
		{"many in one answer, by default", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(batch(25))
			p.failBatch(1, 25)
		}, "", ""},
		{"and in the next, which has heard of them", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(batch(25))
			p.failBatch(1, 25)
			p.answer(asks("", "send more"))
			p.fails("c2.1", "two")
		}, event.ReasonRepeatedFailure, ""},
		{"and again after a success", agent.Config{Dispatch: agent.ParallelAll}, func(p *play) {
			p.answer(batch(25))
			p.failBatch(1, 25)
			p.answer(asks("", "send a"))
			p.results("c2.1=A")
			p.answer(batch(25))
			p.failBatch(3, 25)
		}, "", ""},
		{"one failure less than the threshold", threshold(4), failing(3, "one", "two"), "", ""},
		{"as many as the threshold", threshold(4), failing(4, "one", "two", "three"), event.ReasonRepeatedFailure, ""},
		{"a success in between", threshold(2), func(p *play) {
			failing(1, "one")(p)
			p.answer(asks("", "read b", "read c", "read d"))
			p.fails("c2.3", "two")
			p.results("c2.1=B")
			p.fails("c2.2", "one")
		}, event.ReasonRepeatedFailure, ""},
		{"a success at the end", threshold(2), func(p *play) {
			p.answer(asks("", "read b", "read c", "read d"))
			p.fails("c1.1", "two")
			p.fails("c1.2", "two")
			p.results("c1.3=B")
		}, "", ""},
		{"calls that the run itself kept from running", threshold(2), func(p *play) {
			p.answer(finish(llm.FinishLength, asks("", "read b", "read c")))
		}, "", ""},

		{"a tool that is gone, once", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.fails("c1.1", event.ErrorUnavailable)
		}, "", ""},
		{"and again", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.fails("c1.1", event.ErrorUnavailable)
			p.answer(asks("", "get a"))
			p.fails("c2.1", event.ErrorWorkspace)
		}, event.ReasonToolUnavailable, "the last was get"},
		{"and another way that works", agent.Config{}, func(p *play) {
			p.answer(asks("", "read a"))
			p.fails("c1.1", event.ErrorUnavailable)
			p.answer(asks("", "read a", "get b"))
			p.fails("c2.1", event.ErrorUnavailable)
			p.results("c2.2=B")
			p.answer(asks("", "read a"))
			p.fails("c3.1", event.ErrorUnavailable)
		}, "", ""},
		{"a tool of the run that nobody knows any more", agent.Config{Tools: []llm.ToolDef{{Name: "lost"}}}, func(p *play) {
			p.answer(asks("", "lost a"))
			p.answer(asks("", "lost a"))
		}, event.ReasonToolUnavailable, "lost"},
		{"arguments that a tool of the run does not take", agent.Config{Tools: []llm.ToolDef{{Name: "read"}}}, func(p *play) {
			p.answer(asks("", "read bad"))
			p.answer(asks("", "read bad"))
		}, "", ""},
		{"a tool that never was", agent.Config{}, func(p *play) {
			p.answer(asks("", "lost a"))
			p.answer(asks("", "lost a"))
		}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(t, tt.cfg)
			tt.play(p)
			p.check()
			o := p.ended()
			if o.Reason != tt.reason {
				t.Fatalf("ended with %q, want %q\n%s", o.Reason, tt.reason, p.log.String())
			}
			if o.Error != nil && !strings.Contains(o.Error.Message, tt.says) || o.Error == nil && tt.says != "" {
				t.Errorf("error %+v, want %q", o.Error, tt.says)
			}
		})
	}
}

// A run that ends on a result names the call that it came from, and a call that
// did not run ends none.
//
// rows: HAR-14
func TestSuccessRestsOnWhatACallDid(t *testing.T) {
	cfg := agent.Config{
		Policy:     policy.Rules{Declared: true, Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "send", Reason: "all tests pass"}}},
		Conditions: []stop.Condition{{Kind: stop.ToolResult, Tool: "send", Match: stop.Match{Contains: "pass"}}, {Kind: stop.ToolResult, Tool: "get", Match: stop.Match{Contains: "pass"}}},
	}
	p := newPlay(t, cfg)
	p.answer(asks("I have tested it: all tests pass", "send a", "read b", "get c"))
	p.results("c1.2=all tests pass", "c1.3=two fail")
	if o := p.ended(); o.Reason != "" {
		t.Fatalf("a call that was denied, or another tool's result, ended the run: %+v", o)
	}
	p.answer(asks("", "read b", "get c"))
	p.results("c2.1=pass", "c2.2=all pass")
	o := p.ended()
	if o.Reason != event.ReasonConditionMet || *o.Index != 1 {
		t.Fatalf("%+v", o)
	}
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(event.RunTerminatedBy); ok && d.CallID != "c2.2" {
			t.Errorf("the evidence is %q", d.CallID)
		}
	}
}
