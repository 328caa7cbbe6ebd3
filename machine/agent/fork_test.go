package agent_test

import (
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
)

// branch is a fork of the run behind the first event of a kind.
func (p *play) branch(kind event.Type) *play {
	p.t.Helper()
	b := emptyPlay(p.t)
	for _, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		b.apply(e.Data)
		if e.Type() == kind {
			b.command(event.RunForked{From: "r", Seq: b.seq})
			return b
		}
	}
	p.t.Fatalf("there is no %s:\n%s", kind, p.log.String())
	return nil
}

// What the run before spent, went beyond or set aside is not the fork's, which
// has the whole budget before it.
func TestAForkHasAnAccountOfItsOwn(t *testing.T) {
	// A token costs one dollar.
	for name, input := range map[string]int64{"all but a dollar is spent": 296, "an overrun": 400} {
		p := newPlay(t, agent.Config{MaxTokens: 4, Limits: budget.Limits{USDPerRun: 300}})
		p.answer(used(input, 3, asks("", "read a")))
		if p.live.State().Outcome == nil {
			p.results("c1.1=A")
		}
		if o := p.outcome(); o.Limit != "usd_per_run" {
			t.Fatalf("%s: %+v", name, o)
		}
		b := p.branch(event.TypeToolResults)
		if b.call == nil {
			t.Fatalf("%s: the fork does not go on:\n%s", name, b.log.String())
		}
		b.answer(asks("", "read b"))
		b.results("c2.1=B")
		b.answer(says("done"))
		if o := b.outcome(); o.Reason != event.ReasonFinalAnswer || o.Cost.USD != 3+3 || o.Usage.Input != 4 {
			t.Errorf("%s: %s, cost %+v, usage %+v", name, o.Reason, o.Cost, o.Usage)
		}
		b.check()
	}
}
