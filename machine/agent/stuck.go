package agent

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

// observe shows the calls of a settled cycle to the watch for repetition. What
// kept a call from running for reasons of the run's own says nothing about the
// model.
func (m *Machine) observe() {
	var work stop.Work
	for _, c := range m.calls {
		switch c.result.ErrorType {
		case event.ErrorTruncated, event.ErrorCancelled, event.ErrorBudget, event.ErrorInDoubt:
			continue
		}
		work.Add(c.resolved.Facts, c.result, c.news)
		if !c.resolved.Polling {
			seen := stop.Call{Tool: c.ref.Name, Digest: c.own, Result: c.result}
			if c.blocked != nil {
				seen.Blocked = stop.Pattern(c.blocked.Pattern)
			}
			m.repetition.Called(seen)
		}
	}
	m.repetition.Worked(work)
}

// circling says that a call goes on with what the model was told of. Calls before
// it in the answer count: a new one among them breaks a circle.
func (m *Machine) circling(c *call) (event.Stuck, bool) {
	if c.blocked != nil && c.result == nil {
		return *c.blocked, true
	}
	if !m.repetition.Warned() || c.result != nil || c.attempt > 0 || c.verdict != nil || c.resolved.Polling {
		return event.Stuck{}, false
	}
	if len(m.asked) == 0 {
		m.listAsked()
	}
	d, ok := m.repetition.Blocked(m.asked[:c.asked])
	d.CallID = c.ref.CallID
	return d, ok
}

// listAsked lists the calls of the answer for the watch for repetition.
func (m *Machine) listAsked() {
	for _, c := range m.calls {
		if !c.resolved.Polling {
			m.asked = append(m.asked, stop.Asked{Tool: c.ref.Name, Digest: c.own, Works: stop.Works(c.resolved.Facts)})
		}
		c.asked = len(m.asked)
	}
}

// block keeps a call from running: the decision first, then its result.
func (m *Machine) block(c *call, d event.Stuck) {
	if c.blocked == nil {
		m.record(d)
		return
	}
	m.record(c.failed(event.ErrorBlocked, stop.Message(d)))
}

// nextStuck acts on repetition once a cycle has settled: it nudges, or ends the
// run, and says whether it did.
func (m *Machine) nextStuck() bool {
	if m.stuck == nil {
		if d, ok := m.repetition.Due(); ok {
			m.record(d)
			return true
		}
		return false
	}
	switch d := *m.stuck; d.Action {
	case event.StuckStop:
		m.terminate(event.RunTerminatedBy{
			Reason: event.ReasonStuck, Kind: d.Pattern,
			Detail: fmt.Sprintf("%s, %d times in a row", sentence(d.Pattern, d.Tool), d.Count),
		})
	default:
		m.nudge(event.NudgeStuck, stop.Message(d))
	}
	return true
}

func (m *Machine) applyStuck(d *event.Stuck) error {
	switch d.Action {
	case event.StuckBlock:
		c := m.call(d.CallID)
		if m.phase != phaseTools || c == nil || c.result != nil {
			return fmt.Errorf("%w: %s is blocked, which is no open call of cycle %d", ErrMisfit, d.CallID, m.cycle)
		}
		c.blocked = d
		return nil
	case event.StuckNudge:
		m.repetition.Nudged(stop.Pattern(d.Pattern))
	}
	if m.phase != phaseSettled {
		return fmt.Errorf("%w: repetition is judged within cycle %d", ErrMisfit, m.cycle)
	}
	m.stuck = d
	return nil
}

// heardAnswer shows an answer to the watch for repetition.
func (m *Machine) heardAnswer(parts llm.Parts, calls int) {
	m.repetition.Answered(parts.Text(), calls > 0)
}
