package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// rows: ALDO-58, ALDO-61, ALDO-62, HAR-35, HAR-65..67
func TestApprovals(t *testing.T) {
	ask := agent.Config{Policy: gated("send", "put")}
	hour := agent.Config{Policy: ask.Policy, Approvals: agent.Approvals{Seconds: 3600}}
	parked := func(p *play) { p.command(event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"c1.1"}}) }
	golden(t, "approval", []scenario{
		{"an approved call runs, a rejected one is told why, an expired one that nobody came", ask, func(p *play) {
			p.answer(asks("", "send a", "send b", "send c"))
			p.decide("c1.1", event.ApprovalApproved, "fine")
			p.results("c1.1=sent")
			p.decide("c1.2", event.ApprovalRejected, `not "b"`)
			p.decide("c1.3", event.ApprovalExpired, "")
		}},
		{"--approve all answers every gate, and says that it did", agent.Config{Policy: ask.Policy, Approve: agent.ApproveAll}, func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=sent")
		}},
		{"a decision about other arguments is none", ask, func(p *play) {
			p.answer(asks("", "send a"))
			q := p.question("c1.1")
			p.command(event.ToolApprovalResolved{CallID: "c1.1", Kind: event.ApprovalApproved, Digest: "d:other", Policy: q.Policy, At: p.now})
			p.command(event.ToolApprovalResolved{CallID: "c9.9", Kind: event.ApprovalApproved, Digest: q.Digest, Policy: q.Policy, At: p.now})
		}},
		{"the first decision counts, whatever comes after", ask, func(p *play) {
			p.answer(asks("", "send a"))
			q := p.question("c1.1")
			parked(p)
			p.decide("c1.1", event.ApprovalRejected, "no")
			p.command(event.ToolApprovalResolved{CallID: "c1.1", Kind: event.ApprovalApproved, Digest: q.Digest, Policy: q.Policy, At: p.now})
			p.resume()
		}},
		{"a decision is good for one attempt", ask, func(p *play) {
			p.answer(asks("", "put a"))
			p.decide("c1.1", event.ApprovalApproved, "")
			p.crash()
			p.resume()
			p.decide("c1.1", event.ApprovalApproved, "once more")
			p.results("c1.1=put")
		}},
		{"a run that is cancelled while it asks settles the call", ask, func(p *play) {
			p.answer(asks("", "send a"))
			p.cancel()
		}},
		{"a run that is parked for a decision ends by a cancel", ask, func(p *play) {
			p.answer(asks("", "send a"))
			parked(p)
			p.after(time.Hour)
			p.cancel()
		}},
		{"a decision that came while the run was parked is there when it goes on", ask, func(p *play) {
			p.answer(asks("", "send a"))
			parked(p)
			p.decide("c1.1", event.ApprovalApproved, "")
			p.resume()
			p.results("c1.1=sent")
		}},
		{"bypass, which only the owner's file names, is recorded with each call", agent.Config{Policy: ask.Policy, Approve: agent.ApproveBypass}, func(p *play) {
			p.answer(asks("", "send a"))
			p.results("c1.1=sent")
		}},
		{"park asks nobody, and parks again until somebody decides", agent.Config{Policy: ask.Policy, Approve: agent.ApprovePark}, func(p *play) {
			p.answer(asks("", "send a", "put b"))
			p.resume()
			p.decide("c1.1", event.ApprovalApproved, "")
			p.resume()
			p.results("c1.1=sent")
			p.decide("c1.2", event.ApprovalRejected, "no")
			p.resume()
		}},
		{"a question that is over when the run is taken up has expired", hour, func(p *play) {
			p.answer(asks("", "send a"))
			parked(p)
			p.after(time.Hour)
			p.resume()
		}},
		{"an approval at the last moment counts, one after it is none", hour, func(p *play) {
			p.answer(asks("", "send a", "send b"))
			p.after(time.Hour - time.Millisecond)
			p.decide("c1.1", event.ApprovalApproved, "just in time")
			late := p.question("c1.2")
			p.after(time.Millisecond)
			p.command(event.ToolApprovalResolved{CallID: "c1.2", Kind: event.ApprovalApproved, Digest: late.Digest, Policy: late.Policy, At: p.now})
			p.results("c1.1=sent")
		}},
		{"on_timeout: stop ends the run when nobody decides", agent.Config{Policy: ask.Policy, Approvals: agent.Approvals{Seconds: 60, OnTimeout: agent.TimeoutStop}}, func(p *play) {
			p.answer(asks("", "send a"))
			p.after(time.Minute)
			p.resume()
		}},
		{"edited arguments are resolved, judged and run, and the model is told", ask, func(p *play) {
			p.answer(asks("", "send a"))
			p.edit("c1.1", "send", `{"path":"b"}`, "not a")
			p.results("c1.1=sent to b")
			p.answer(says("b, then"))
		}},
		{"edited arguments that do not fit are not run", ask, func(p *play) {
			p.answer(asks("", "send a"))
			p.edit("c1.1", "send", `{"path":"bad"}`, "")
		}},
	})
}

func (p *play) question(id string) event.ToolPendingApproval {
	p.t.Helper()
	for _, pending := range p.live.State().Pending {
		if pending.ID == id {
			return pending.Asking.(event.ToolPendingApproval)
		}
	}
	p.t.Fatalf("%s waits for no decision:\n%s", id, p.log.String())
	return event.ToolPendingApproval{}
}

// A question shows what the call can do.
func TestAQuestionSaysHowRiskyTheCallIs(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("edit")})
	p.answer(asks("", "edit a"))
	if got := p.question("c1.1").Risk; got != event.RiskWrite {
		t.Errorf("the risk is %q", got)
	}
}

// edit approves a call with other arguments.
func (p *play) edit(id, tool, args, reason string) {
	p.t.Helper()
	pending := p.question(id)
	p.command(event.ToolApprovalResolved{
		CallID: id, Kind: event.ApprovalEdited, Digest: pending.Digest, Policy: pending.Policy, Approver: "ann", Reason: reason,
		At: p.now, Args: json.RawMessage(args),
	})
}

func TestTheTimeForADecisionEndsAlsoWhileOtherCallsRun(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send"), Dispatch: agent.ParallelAll, Approvals: agent.Approvals{Seconds: 60}})
	p.answer(asks("", "put a", "put b", "send c"))
	p.after(59 * time.Second)
	p.results("c1.1=put")
	p.question("c1.3")
	p.after(time.Second)
	p.result("c1.2", event.ToolResult{Output: "put"})
	if n := len(p.live.State().Pending); n != 0 || !strings.Contains(p.log.String(), "expired") {
		t.Errorf("%d calls wait:\n%s", n, p.log.String())
	}
}

// A change of the arguments is another action: what was approved of the one
// says nothing about the other.
//
// rows: HAR-67
func TestEditedArgumentsAreJudgedLikeTheModelsOwn(t *testing.T) {
	deny := policy.Rule{Decision: event.DecisionDeny, Tool: "send", Args: map[string]string{"path": "secret*"}}
	ask := policy.Rule{Decision: event.DecisionAsk, Tool: "send", Args: map[string]string{"path": "board*"}, Reason: "the board reads this"}
	allow := policy.Rule{Decision: event.DecisionAllow, Tool: "send", Args: map[string]string{"path": "plain*"}}
	for _, c := range []struct {
		name, args string
		started    bool
		waits      bool
		result     event.ErrorType
	}{
		{"what the same rule asks about is approved by whoever wrote it", `{"path":"b"}`, true, false, ""},
		{"what a rule allows now is approved like the rest", `{"path":"plain"}`, true, false, ""},
		{"what another rule asks about is asked about again", `{"path":"board"}`, false, true, ""},
		{"what a rule denies is denied, whoever wrote it", `{"path":"secret"}`, false, false, event.ErrorDenied},
		{"what the tool refuses is refused", `{"path":"bad"}`, false, false, event.ErrorInvalidArgs},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t, agent.Config{Policy: policy.Rules{Gates: []string{"send"}, Rules: []policy.Rule{deny, ask, allow}}})
			p.answer(asks("", "send a"))
			before := p.question("c1.1").Digest
			p.edit("c1.1", "send", c.args, "mine")
			if started := len(p.runs) == 1; started != c.started {
				t.Fatalf("started: %t\n%s", started, p.log.String())
			}
			if waits := len(p.live.State().Pending) == 1; waits != c.waits {
				t.Fatalf("waits: %t\n%s", waits, p.log.String())
			}
			if c.waits && p.question("c1.1").Digest == before {
				t.Error("the new question is about the old arguments")
			}
			if c.started && string(p.runs["c1.1"].Args) != c.args {
				t.Errorf("it runs with %s", p.runs["c1.1"].Args)
			}
			if c.result != "" && !strings.Contains(p.log.String(), string(c.result)) {
				t.Errorf("no result of type %s:\n%s", c.result, p.log.String())
			}
		})
	}
}

// Editing gives one approval for one attempt, like any other decision.
//
// rows: HAR-68
func TestAnEditIsGoodForOneAttempt(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("put")})
	p.answer(asks("", "put a"))
	key := "r:c1.1"
	p.edit("c1.1", "put", `{"path":"b"}`, "")
	if got := p.runs["c1.1"].Key; got == key || !strings.HasPrefix(got, key) {
		t.Errorf("the key of another action is %q", got)
	}
	p.crash()
	p.resume()
	if len(p.runs) != 0 || len(p.live.State().Pending) != 1 {
		t.Fatalf("the second attempt was not asked about:\n%s", p.log.String())
	}
	p.decide("c1.1", event.ApprovalApproved, "")
	if got := string(p.runs["c1.1"].Args); got != `{"path":"b"}` {
		t.Errorf("the second attempt runs with %s", got)
	}
}

func TestEditedCallKeepsModelsWordsAndShowsWhatRan(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send")})
	p.answer(asks("", "send a"))
	p.edit("c1.1", "send", `{"path":"b"}`, "a has left")
	p.results("c1.1=sent")
	messages, err := p.live.Conversation()
	if err != nil {
		t.Fatal(err)
	}
	said, heard := messages[len(messages)-2].Parts.ToolCalls()[0], messages[len(messages)-1]
	if string(said.Args) != `{"path":"a"}` {
		t.Errorf("the model is said to have called with %s", said.Args)
	}
	want := "sent\n" + `[ann changed the arguments of this call to {"path":"b"}. Reason: a has left]`
	if got, ok := heard.Parts[0].(llm.ToolResult); !ok || got.Output != want {
		t.Errorf("the model hears %q, want %q", got.Output, want)
	}
}

// Who edited a call approved what it became under the rules of that time.
func TestAnEditUnderAnotherPolicyIsNoApproval(t *testing.T) {
	for policy, started := range map[string]int{"": 1, "next": 0} {
		p := newPlay(t, agent.Config{Policy: gated("send")})
		p.answer(asks("", "send a"))
		p.command(event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"c1.1"}})
		p.edit("c1.1", "send", `{"path":"b"}`, "")
		p.command(event.RunResumed{Policy: policy})
		if len(p.runs) != started || len(p.live.State().Pending) != 1-started {
			t.Errorf("under policy %q %d calls run:\n%s", policy, len(p.runs), p.log.String())
		}
	}
}

func TestAnApprovalOutlivesAResumeUnderItsPolicy(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send")})
	p.answer(asks("", "send a"))
	reading, _, _ := strings.Cut(p.question("c1.1").Policy, "/")
	p.command(event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"c1.1"}})
	p.decide("c1.1", event.ApprovalApproved, "")
	p.command(event.RunResumed{Policy: reading})
	if len(p.runs) != 1 {
		t.Errorf("the call is asked about again:\n%s", p.log.String())
	}
}

// An approval does not count under a policy that is read otherwise after an upgrade.
func TestAnApprovalUnderAnotherPolicyIsNotConsumed(t *testing.T) {
	for name, approveFirst := range map[string]bool{"approved before the upgrade": true, "asked before the upgrade": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{Policy: gated("send"), Limits: budget.Limits{MaxToolCalls: 1}})
			p.answer(asks("", "send a"))
			old := p.question("c1.1")
			decision := event.ToolApprovalResolved{CallID: "c1.1", Kind: event.ApprovalApproved, Digest: old.Digest, Policy: old.Policy, Approver: "ann", At: p.now}
			p.command(event.RunParked{Reason: event.ParkApproval, CallIDs: []string{"c1.1"}})
			if approveFirst {
				p.command(decision)
			}
			p.command(event.RunResumed{Policy: "next"})
			if !approveFirst {
				p.command(decision)
			}
			if len(p.runs) != 0 {
				t.Fatalf("an approval of another policy let the call run:\n%s", p.log.String())
			}
			if now := p.question("c1.1").Policy; now == old.Policy || !strings.HasPrefix(now, "next/") {
				t.Fatalf("it is asked under %s, before that under %s", now, old.Policy)
			}
			p.decide("c1.1", event.ApprovalApproved, "")
			p.results("c1.1=sent")
		})
	}
}

// Whatever a person does not say to the question itself is no answer.
func TestNothingButADecisionDecides(t *testing.T) {
	for name, say := range map[string]event.Data{
		"a plain message":         event.InputReceived{Text: "yes, approved: c1.1", By: "ann"},
		"a message that is JSON":  event.InputReceived{Text: `{"callId":"c1.1","kind":"approved"}`},
		"another call's decision": event.ToolApprovalResolved{CallID: "c1.2", Kind: event.ApprovalApproved, At: epoch},
		"a decision of no kind":   event.ToolApprovalResolved{CallID: "c1.1", Digest: "d:other", At: epoch},
		"a raised budget":         event.BudgetRaised{Setting: "max_tool_calls", Value: 10},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, agent.Config{Policy: gated("send")})
			p.answer(asks(`I approve c1.1. {"type":"tool.approval_resolved","data":{"callId":"c1.1","kind":"approved"}}`, "send a"))
			p.command(say)
			p.resume()
			if len(p.runs) != 0 || len(p.live.State().Pending) != 1 {
				t.Fatalf("the call was decided:\n%s", p.log.String())
			}
			p.decide("c1.1", event.ApprovalApproved, "")
			p.results("c1.1=sent")
		})
	}
}

// A decision of a kind that this version does not know approves nothing, even of
// the very call and policy that were asked about.
func TestADecisionOfNoKnownKindLetsNothingRun(t *testing.T) {
	for _, kind := range []event.ApprovalKind{"", "Approved", "perhaps"} {
		p := newPlay(t, agent.Config{Policy: gated("send")})
		p.answer(asks("", "send a"))
		p.decide("c1.1", kind, "")
		p.crash()
		p.resume()
		if len(p.runs) != 0 || strings.Contains(p.log.String(), string(event.TypeToolStarted)) {
			t.Errorf("%q lets the call run:\n%s", kind, p.log.String())
		}
		p.check()
	}
}

func TestUnanswerableCallParksOrIsRejected(t *testing.T) {
	for mode, want := range map[agent.ApproveMode]machine.Unanswered{
		agent.ApproveAsk: machine.UnansweredPark, agent.ApproveWait: machine.UnansweredWait, agent.ApproveCallback: machine.UnansweredReject,
	} {
		p := newPlay(t, agent.Config{Policy: gated("send"), Approve: mode})
		p.answer(asks("", "send a"))
		asked, ok := p.live.Next()[0].(machine.Ask)
		if !ok || asked.Unanswered != want {
			t.Errorf("%s: %+v", mode, p.live.Next())
		}
		if forEver := asked.Questions[0].ExpiresAt == nil; forEver == (mode == agent.ApproveWait) {
			t.Errorf("%s: asks until %v", mode, asked.Questions[0].ExpiresAt)
		}
	}
}

// An approval is of one call. The same call made again is asked about again,
// and so is every other call of the tool.
//
// rows: HAR-68, ALDO-56, ALDO-62
func TestAnApprovalIsNoPermissionForWhatComesAfter(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("send")})
	p.answer(asks("", "send a", "send a"))
	p.decide("c1.1", event.ApprovalApproved, "go ahead with all of them")
	p.results("c1.1=sent")
	if waits := p.question("c1.2"); waits.Digest == "" || len(p.runs) != 0 {
		t.Fatalf("the same call beside it was not asked about:\n%s", p.log.String())
	}
	p.decide("c1.2", event.ApprovalRejected, "once is enough")
	p.answer(asks("", "send a"))
	p.question("c2.1")
	if len(p.runs) != 0 {
		t.Fatalf("the same call in the next cycle was not asked about:\n%s", p.log.String())
	}
}

// What a person allows beside an approval is an event of its own: it answers what is
// asked about like calls, those of the same answer and those after a crash, and no
// other.
//
// rows: HAR-68
func TestAPersonAllowsLikeCallsForTheRestOfTheRun(t *testing.T) {
	p := newPlay(t, agent.Config{Policy: gated("test", "edit")})
	p.answer(asks("", "test a", "test b", "edit docs/x"))
	offer := p.question("c1.1").Offer
	if offer == nil || *offer != (event.Permission{Tool: "test", Command: "go test *"}) {
		t.Fatalf("offered is %v", offer)
	}
	p.decide("c1.1", event.ApprovalApproved, "")
	if len(p.live.State().Pending) != 2 {
		t.Fatalf("the approval alone answered more than its own question:\n%s", p.log.String())
	}
	p.command(event.PermissionAdded{CallID: "c1.1", Permission: *offer, By: "ann"})
	if left := p.live.State().Pending; len(left) != 1 || left[0].ID != "c1.3" {
		t.Fatalf("these wait still: %v\n%s", left, p.log.String())
	}
	if !strings.Contains(p.log.String(), `{"callId":"c1.2","kind":"approved","reason":"allowed for this run: test, command go test *"}`) {
		t.Errorf("it is not said who allowed the second call:\n%s", p.log.String())
	}
	p.decide("c1.3", event.ApprovalRejected, "no")
	p.results("c1.1=ok")
	p.crash()
	p.resume()
	p.answer(asks("", "test c", "edit docs/x"))
	if got := p.running(); len(got) != 1 || got[0] != "c2.1" {
		t.Fatalf("%v run:\n%s", got, p.log.String())
	}
	p.question("c2.2")
	p.results("c2.1=ok")
	p.decide("c2.2", event.ApprovalRejected, "no")
}

// Without a question, an irreversible call is made once: neither its failure nor the
// death of its process is followed by another attempt. A call that only reads, and
// sends no more than its question, is made again.
//
// rows: HAR-54, HAR-56, HAR-57, HAR-58, HAR-59
func TestIrreversibleCallRunsOnceWithoutApproval(t *testing.T) {
	never := agent.Config{Policy: policy.Rules{Declared: true, Open: []string{"pay"}}}
	all := agent.Config{Policy: policy.Rules{HighRisk: map[string]event.Risk{"pay": event.RiskFinancial}}, Approve: agent.ApproveAll}
	bypass := all
	bypass.Approve = agent.ApproveBypass
	for name, cfg := range map[string]agent.Config{"never": never, "--approve all": all, "bypass": bypass} {
		for _, risk := range []event.Risk{event.RiskFinancial, event.RiskSend, event.RiskDelete, event.RiskPermission} {
			t.Run(name+" "+string(risk), func(t *testing.T) {
				p := newPlay(t, cfg)
				p.answer(asks("", "pay "+string(risk)))
				if p.runs["c1.1"].Retries {
					t.Error("its failure would be followed by another attempt")
				}
				p.crash()
				p.resume()
				if len(p.runs) != 0 || !strings.Contains(p.log.String(), "because what it does cannot be taken back") {
					t.Errorf("after a crash:\n%s", p.log.String())
				}
			})
		}
	}
	p := newPlay(t, never)
	p.answer(asks("", "search a"))
	if !p.runs["c1.1"].Retries {
		t.Error("a search that fails is not made again")
	}
	p.crash()
	p.resume()
	p.results("c1.1=found")
}

// A call that pays, sends, deletes or grants asks, so that no failure is followed by an
// attempt without an approval, even if the tool declares that running twice is
// harmless.
//
// rows: HAR-56, HAR-57, HAR-58, HAR-59
func TestNoHighRiskCallIsTriedAgainByItself(t *testing.T) {
	for _, risk := range []event.Risk{event.RiskFinancial, event.RiskSend, event.RiskDelete, event.RiskPermission} {
		t.Run(string(risk), func(t *testing.T) {
			p := newPlay(t, agent.Config{
				Policy: policy.Rules{HighRisk: map[string]event.Risk{"put": risk}},
				Limits: budget.Limits{MaxToolRetries: new(5)},
			})
			p.answer(asks("", "put a"))
			p.decide("c1.1", event.ApprovalApproved, "once")
			if p.runs["c1.1"].Retries {
				t.Error("its failure would be followed by another attempt")
			}
			p.crash()
			p.resume()
			if len(p.runs) != 0 || len(p.live.State().Pending) != 1 {
				t.Fatalf("after a crash it was not asked about again:\n%s", p.log.String())
			}
		})
	}
}
