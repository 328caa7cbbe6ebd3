package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/stop"
)

// childRun is the run that answers a call.
type childRun struct {
	id string
	// parked is what the child waits for, nil while it goes.
	parked *event.ChildParked
	// waiting says that the child goes, and waits for a person.
	waiting bool
	// finished says that its outcome is known; the call's result follows from it.
	finished bool
}

// childWaits says that the call's child is under way and waits for a person.
func (c *call) childWaits() bool { return c.running && c.openChild() && c.child.waiting }

// openChild says that the call's child was begun and has no outcome yet.
func (c *call) openChild() bool { return c.child != nil && c.result == nil }

func (m *Machine) applyChildStarted(e *event.Event, d event.ChildStarted) error {
	if c := m.call(d.CallID); c != nil && c.result == nil && (!c.running || c.child != nil) {
		return fmt.Errorf("%w: child %s of %s is not due", ErrMisfit, d.Child, d.CallID)
	}
	return m.onOpenCall(e, d.CallID, func(c *call) { c.child = &childRun{id: d.Child} })
}

func (m *Machine) applyChildParked(e *event.Event, d event.ChildParked) error {
	return m.onChild(e, d.CallID, d.Child, func(c *call) { c.child.parked, c.child.waiting, c.running = &d, false, false })
}

func (m *Machine) applyChildWaiting(e *event.Event, d event.ChildWaiting) error {
	return m.onChild(e, d.CallID, d.Child, func(c *call) {
		if c.child.parked != nil && !d.Waiting {
			c.child.parked, c.running = nil, true
		}
		c.child.waiting = d.Waiting
	})
}

func (m *Machine) applyChildFinished(e *event.Event, d event.ChildFinished) error {
	return m.onChild(e, d.CallID, d.Child, func(c *call) { c.child.finished = true })
}

// onChild changes a call whose child has no outcome yet.
func (m *Machine) onChild(e *event.Event, callID, child string, change func(*call)) error {
	if c := m.call(callID); c != nil && c.result == nil && (c.child == nil || c.child.id != child || c.child.finished) {
		return fmt.Errorf("%w: %s of %s, which is no open child of %s", ErrMisfit, e.Type(), child, callID)
	}
	return m.onOpenCall(e, callID, change)
}

// taskCall is a call as whoever performs it needs it.
func (m *Machine) taskCall(c *call) machine.RunTool {
	return machine.RunTool{
		CallID: c.ref.CallID, Attempt: c.attempt, Key: c.key(m.run), Tool: c.ref.Name,
		Args: c.resolved.Args, Facts: c.resolved.Facts, Labels: c.resolved.Labels,
		MaxResultChars: m.cfg.Limits.MaxResultChars, Sought: stop.Sought(m.cfg.Conditions, c.ref.Name),
	}
}

func (m *Machine) startChild(c *call) {
	a, made := c.due.(machine.StartChild)
	if !made || a.Taint != m.taint || a.Call.MaxResultChars != m.cfg.Limits.MaxResultChars {
		a = machine.StartChild{Call: m.taskCall(c), Taint: m.taint}
		if c.child == nil {
			a.Call.Attempt++
		} else {
			a.Child = c.child.id
		}
		c.due = a
	}
	m.actions = append(m.actions, c.due)
}

// nextChildren keeps the children going that are under way. After a crash they
// go on where their own journals stand: what was settled there is paid for, so
// such a call is never in doubt.
func (m *Machine) nextChildren() {
	if m.standing.total.children == 0 {
		return
	}
	for _, c := range m.unsettled() {
		if c.openChild() && c.running {
			m.startChild(c)
		}
	}
}

// endChildren ends the children of a run that was cancelled.
func (m *Machine) endChildren() {
	for _, c := range m.calls {
		if c.openChild() {
			m.actions = append(m.actions, machine.CancelChild{
				Call: m.taskCall(c), Child: c.child.id, Reason: sentence("the run that started this one was cancelled", m.cancel.Reason),
			})
		}
	}
}

// heldChildren names the limit on time that keeps children from going on until
// it is raised, or is empty. Its end parked them.
func (m *Machine) heldChildren() string {
	late := m.outOfTime()
	if m.asksAt(late) && slices.ContainsFunc(m.calls, func(c *call) bool { return c.openChild() && c.child.parked != nil }) {
		return late
	}
	return ""
}

// awaitChildren parks the run once all that is left of its cycle waits for
// somebody: its siblings finish first (DESIGN, "The tree of runs"). Whoever
// resumes the run wakes the children.
func (m *Machine) awaitChildren() {
	var parked event.RunParked
	var details []string
	var limit string
	var needs []float64
	if m.standing.total.children == 0 || m.standing.total.running > 0 {
		return
	}
	for _, c := range m.unsettled() {
		switch {
		case c.openChild() && c.child.parked != nil:
			d := c.child.parked
			parked.Reason = weightier(parked.Reason, d.Reason)
			parked.Until = sooner(parked.Until, d.Until)
			if limit = cmp.Or(limit, d.ParentLimit); limit != "" && limit == d.ParentLimit {
				needs = append(needs, d.AtLeast)
			}
			details = append(details, waitsFor(c.ref.Name, d))
		}
	}
	if parked.Reason == event.ParkInput {
		parked.Limit = limit
	}
	if parked.Limit != "" {
		parked.AtLeast = slices.Min(needs) // one of them goes on
	}
	if len(details) > 0 {
		parked.Detail = strings.Join(details, "; ")
		m.record(parked)
	}
}

// weightier is the reason that somebody has to do the most about.
func weightier(a, b event.ParkReason) event.ParkReason {
	for _, r := range []event.ParkReason{event.ParkApproval, event.ParkInput, event.ParkPaused, event.ParkInterrupted} {
		if a == r || b == r {
			return r
		}
	}
	return b
}

func sooner(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// waitsFor says what a child waits for, and where somebody can do something
// about it.
func waitsFor(name string, d *event.ChildParked) string {
	switch {
	case len(d.CallIDs) > 0:
		return fmt.Sprintf("%s (run %s) waits for a decision on %s; decide, then resume this run", name, d.Child, strings.Join(d.CallIDs, ", "))
	case d.Detail != "":
		return fmt.Sprintf("%s (run %s) is parked as %s: %s", name, d.Child, d.Reason, d.Detail)
	}
	return fmt.Sprintf("%s (run %s) is parked as %s", name, d.Child, d.Reason)
}
