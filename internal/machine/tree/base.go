package tree

import (
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// Base is the state that every machine keeps about its run: the id, the times, the
// usage including the runs below it, and the reason why it stops.
type Base struct {
	ID string
	// Parent is the run that started this one, or empty.
	Parent string
	// Now is the time of the last event, and TakenUp the time of the last resume.
	Now, TakenUp time.Time
	Account
	// Taint is the taint of the run.
	Taint  event.Taint
	Parked *event.RunParked
	// Cancel is the first request to cancel the run, and Terminated the recorded end.
	Cancel     *event.CancelRequested
	Terminated *event.RunTerminatedBy
	Outcome    *event.Outcome
	// goes reports whether the run is driven, so that the time counts as its own.
	goes bool
}

// Fold folds an event of any run. asking reports whether the run only waited for a
// person before the event.
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
		b.Parked = nil // the run only has to end
	case event.RunTerminatedBy:
		b.Terminated = &d
	case event.RunCompleted:
		b.Outcome = &d.Outcome
	}
}

// pass counts the time during which the run was driven. It does not count the time
// before run.resumed, when the run was parked or not driven; the time that the clock
// skipped while the computer slept; and the time in which the run waited for a person.
func (b *Base) pass(e *event.Event, asking bool) {
	d := e.Time.Sub(b.Now) - time.Duration(e.SkippedMs)*time.Millisecond
	if d > 0 && b.goes && !asking && !takesUp(e.Data) {
		b.Spent.Active += d
		b.Spent.Idle += d
	}
	b.Now = e.Time
}

// takesUp reports whether an event means that the run was not driven before it.
func takesUp(d event.Data) bool {
	switch d.(type) {
	case event.RunResumed, event.RunForked:
		return true
	}
	return false
}

// State returns the part of the state that Base knows.
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

// Deadline returns the time at which a time limit is reached if the run makes no
// progress. It does not limit the hooks at the end of a run.
func (b *Base) Deadline(l budget.Limits) machine.Deadline {
	left, setting := l.Remaining(b.Spent)
	if setting == "" || b.Terminated != nil {
		return machine.Deadline{}
	}
	return machine.Deadline{At: b.Now.Add(max(left, 0)), Setting: setting}
}
