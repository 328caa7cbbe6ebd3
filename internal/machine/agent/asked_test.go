package agent_test

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// asksFor begins a call whose tool asks for the run "k1".
func (p *play) asksFor() {
	p.t.Helper()
	p.answer(asks("", "send a"))
	p.apply(event.ChildStarted{Child: "k1", During: "c1.1"})
}

// ends are the children that the run is about to end.
func (p *play) ends() (ended []string) {
	for _, a := range p.live.Next() {
		if a, is := a.(machine.CancelChild); is {
			ended = append(ended, a.Child)
		}
	}
	return ended
}

// A call goes on beside the run that its tool asked for, and has its result once that
// has ended.
func TestARunThatAToolAskedForEndsWithinTheCall(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.asksFor()
	if next := p.live.Next(); len(next) != 0 {
		t.Errorf("due are %+v", next)
	}
	p.apply(event.ChildFinished{Child: "k1"})
	p.apply(event.ChildStarted{Child: "k2", During: "c1.1"})
	p.result("c1.1", event.ToolResult{Output: "done"})
	if ended := p.ends(); len(ended) != 1 || ended[0] != "k2" {
		t.Errorf("ended are %q", ended)
	}
	p.command(event.ChildFinished{Child: "k2"})
	p.answer(says("done"))
	if o := p.outcome(); !o.OK {
		t.Errorf("%+v", o)
	}
	p.check()
}

// After a crash no tool waits for the run any more: it ends before anything is decided
// about the call.
func TestARunThatAToolAskedForEndsAfterACrash(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		p := newPlay(t, agent.Config{})
		p.asksFor()
		p.crash()
		p.resume()
		if cancelled {
			p.cancel()
		}
		next := p.live.Next()
		if ended := p.ends(); len(next) != 1 || len(ended) != 1 || ended[0] != "k1" {
			t.Fatalf("due are %+v", next)
		}
		p.apply(event.ChildFinished{Child: "k1"})
		next = p.live.Next()
		r, is := next[0].(machine.Record)
		if result, settles := r.Data.(event.ToolResult); !is || !settles || result.ErrorType != event.ErrorInDoubt {
			t.Errorf("then due are %+v", next)
		}
		p.advance()
		p.check()
	}
}

// No person is waited for during a call: a run that parks is ended.
func TestARunThatAToolAskedForDoesNotPark(t *testing.T) {
	p := newPlay(t, agent.Config{})
	p.asksFor()
	p.apply(event.ChildParked{Child: "k1", Reason: event.ParkInput})
	if ended := p.ends(); len(ended) != 1 {
		t.Errorf("ended are %q", ended)
	}
	if s := p.live.State(); s.Phase != machine.Running || s.Asking {
		t.Errorf("%+v", s)
	}
}

func TestARunThatAToolAskedForHasOneEnd(t *testing.T) {
	for _, d := range []event.Data{event.ChildFinished{Child: "k1"}, event.ChildFinished{Child: "k9"}, event.ChildStarted{Child: "k2", During: "c9"}} {
		p := newPlay(t, agent.Config{})
		p.asksFor()
		p.apply(event.ChildFinished{Child: "k1"})
		if err := p.try(d); !errors.Is(err, agent.ErrMisfit) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// A setting that answers every question gives its consent, or declines.
func TestConsentByASettingOfTheRun(t *testing.T) {
	for mode, want := range map[agent.ApproveMode]event.ApprovalKind{
		agent.ApproveAll: event.ApprovalAnswered, agent.ApproveBypass: event.ApprovalAnswered, agent.ApproveDeny: event.ApprovalRejected,
	} {
		p := newPlay(t, agent.Config{Approve: mode})
		p.answer(asks("", "send a"))
		p.apply(event.ToolInputRequired{CallID: "c1.1", Attempt: 1, Tool: "send", Digest: "d", Form: event.Form{Message: "May it?", Schema: []byte(`{"type":"object"}`), Consent: "docs.sampling"}})
		next := p.live.Next()
		if len(next) != 1 {
			t.Fatalf("%s: %+v", mode, next)
		}
		r, _ := next[0].(machine.Record)
		if d, is := r.Data.(event.ToolInputResolved); !is || d.Kind != want || (want == event.ApprovalAnswered) != (string(d.Input) == "{}") {
			t.Errorf("%s: %+v", mode, next[0])
		}
	}
}
