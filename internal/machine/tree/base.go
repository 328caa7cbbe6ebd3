package tree

import (
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// Base is what every machine keeps of its run: who it is, the time that it was
// going, what it and those below it use, and what stops it.
type Base struct {
	ID string
	// Parent is the run that started this one, empty for none.
	Parent string
	// Now is the time of the last event, and TakenUp when somebody last took the run
	// up again.
	Now, TakenUp time.Time
	Account
	// Taint is what the run has taken in.
	Taint  event.Taint
	Parked *event.RunParked
	// Cancel is the first wish to end the run, and Terminated why it ends.
	Cancel     *event.CancelRequested
	Terminated *event.RunTerminatedBy
	Outcome    *event.Outcome
	// goes says that somebody drives the run, so that the time is its own.
	goes bool
}

// Fold takes in what an event says of any run. Before it the run was asking if it
// had nothing to do but wait for a person.
func (b *Base) Fold(e *event.Event, asking bool) {
	b.pass(e, asking)
	switch d := e.Data.(type) {
	case event.RunStarted:
		b.ID, b.Parent, b.Taint, b.goes = e.Run, e.Parent, d.Taint, true
	case event.RunForked:
		b.ID, b.Parent, b.goes = e.Run, e.Parent, true
	case event.RunResumed:
		b.Parked, b.TakenUp, b.goes = nil, e.Time, true
	case event.RunParked:
		b.Parked, b.goes = &d, false
	case event.CancelRequested:
		if b.Cancel == nil {
			b.Cancel = &d
		}
		b.Parked = nil // it has only its end before it
	case event.RunTerminatedBy:
		b.Terminated = &d
	case event.RunCompleted:
		b.Outcome = &d.Outcome
	}
}

// pass counts the time that the run was going. What lies before run.resumed was
// parked, or nobody drove it; what the clock skipped was a laptop's sleep, which
// must not burn the budget; and a person's time is not the run's.
func (b *Base) pass(e *event.Event, asking bool) {
	d := e.Time.Sub(b.Now) - time.Duration(e.SkippedMs)*time.Millisecond
	if d > 0 && b.goes && !asking && !takesUp(e.Data) {
		b.Spent.Active += d
		b.Spent.Idle += d
	}
	b.Now = e.Time
}

// takesUp reports whether nobody drove the run before this event.
func takesUp(d event.Data) bool {
	switch d.(type) {
	case event.RunResumed, event.RunForked:
		return true
	}
	return false
}

// State is what the base says of where the run stands.
func (b *Base) State(asking bool) machine.State {
	s := machine.State{
		Phase: machine.Running, Parked: b.Parked, Outcome: b.Outcome, Usage: b.Costs.Usage(), Cost: b.Costs.Cost(), Taint: b.Taint,
		Asking: asking && b.goes,
	}
	switch {
	case b.Outcome != nil:
		s.Phase = machine.Ended
	case b.Parked != nil:
		s.Phase = machine.Parked
	}
	return s
}

// Deadline is when one of the limits on time is used up if the run goes on from
// here and nothing new comes of it. Hooks at its end are not bounded.
func (b *Base) Deadline(l budget.Limits) machine.Deadline {
	left, setting := l.Remaining(b.Spent)
	if setting == "" || b.Terminated != nil {
		return machine.Deadline{}
	}
	return machine.Deadline{At: b.Now.Add(max(left, 0)), Setting: setting}
}
