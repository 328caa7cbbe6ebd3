package agent_test

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/history"
)

// check holds a played run against what must be true of every run.
func (p *play) check() {
	p.t.Helper()
	var calls, settled, listed []string
	ends, started := 0, map[string]bool{}
	for i, body := range p.journal {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ModelResponse:
			if d.Purpose == event.PurposeSummary {
				continue // its calls are none of the run's
			}
			for _, c := range d.ToolCalls {
				calls = append(calls, c.CallID)
			}
		case event.ToolStarted:
			started[d.CallID] = true
		case event.ToolResult:
			if slices.Contains(settled, d.CallID) {
				p.t.Errorf("%s has two results", d.CallID)
			}
			settled = append(settled, d.CallID)
		case event.ToolResults:
			for _, r := range d.Results {
				listed = append(listed, r.CallID)
			}
		case event.RunCompleted:
			ends++
			if i != len(p.journal)-1 {
				p.t.Errorf("events follow run.completed")
			}
		}
	}
	ended := p.live.State().Phase == machine.Ended
	if ended != (ends == 1) {
		p.t.Errorf("%d terminal events of a run in phase %s", ends, p.live.State().Phase)
	}
	if ended {
		// Every call has its one result, and the model gets them in the order
		// of its calls.
		if !slices.Equal(calls, listed) {
			p.t.Errorf("calls %v, results %v", calls, listed)
		}
		messages, err := p.live.Conversation()
		if err != nil {
			p.t.Errorf("conversation: %v", err)
		} else if err := history.Lint(messages); err != nil {
			p.t.Errorf("conversation: %v", err)
		}
	}
	if p.t.Failed() {
		p.t.Log("\n" + p.log.String())
	}
	p.alive()
}

// alive fails if a run that has not ended has nothing due and waits for nothing:
// nothing would ever wake it.
func (p *play) alive() {
	p.t.Helper()
	s := p.live.State()
	if s.Phase == machine.Running && len(p.live.Next()) == 0 && p.call == nil && len(p.runs) == 0 {
		p.t.Fatalf("the run hangs:\n%s", p.log.String())
	}
}

// refold folds the first n events from scratch, without any question between.
func (p *play) refold(n int) *agent.Machine {
	p.t.Helper()
	m := agent.New()
	for _, body := range p.journal[:n] {
		e, err := event.Decode(body)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := m.Apply(e); err != nil {
			p.t.Fatal(err)
		}
	}
	return m
}
