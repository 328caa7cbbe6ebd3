package agent

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

func (s *calls) applyChildStarted(r *run, e *event.Event, d event.ChildStarted) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && (!c.running || c.child != nil) {
		return fmt.Errorf("%w: child %s of %s is not due", ErrMisfit, d.Child, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) { c.child = &tree.Child{ChildStarted: d} })
}

// onChild folds an event about a child that has no outcome yet.
func (s *calls) onChild(r *run, e *event.Event, callID, child string) error {
	if c := s.touch(callID); c != nil && c.result == nil && (c.child == nil || c.child.Child != child || c.child.Outcome != nil) {
		return fmt.Errorf("%w: %s of %s, which is no open child of %s", ErrMisfit, e.Type(), child, callID)
	}
	return s.onOpen(r, e, callID, func(c *call) {
		c.child.Apply(e.Data)
		c.running = c.child.Parked == nil
	})
}

// nextChildren keeps the children going that are under way. After a crash they
// go on where their own journals stand: what was settled there is paid for, so
// such a call is never in doubt.
func (s *calls) nextChildren(due *actions) {
	if s.total.children == 0 {
		return
	}
	for _, c := range s.unsettled() {
		if c.due != nil {
			due.add(c.due)
		}
	}
}

// endChildren ends the children of a run that was cancelled.
func (s *calls) endChildren(r *run, due *actions) {
	for _, c := range s.list {
		if c.openChild() {
			call := c.task(r)
			due.add(machine.CancelChild{
				ID: c.ref.CallID, Child: c.child.Child, Call: &call, Reason: sentence("the run that started this one was cancelled", r.Cancel.Reason),
			})
		}
	}
}

// heldChildren names the limit on time that keeps children from going on until
// it is raised, or is empty. Its end parked them.
func (s *calls) heldChildren(r *run) string {
	late := r.outOfTime()
	if r.cfg.asksAt(late) && slices.ContainsFunc(s.list, func(c *call) bool { return c.openChild() && c.child.Parked != nil }) {
		return late
	}
	return ""
}

// awaitChildren parks the run once all that is left of its cycle waits for
// somebody: its siblings finish first. Whoever resumes the run wakes the children.
func (s *calls) awaitChildren(run string) machine.Action {
	if s.total.children == 0 || s.total.running > 0 {
		return nil
	}
	var parked []tree.Parked
	for _, c := range s.unsettled() {
		if c.openChild() && c.child.Parked != nil {
			parked = append(parked, tree.Parked{Name: c.ref.Name, ChildParked: c.child.Parked})
		}
	}
	if len(parked) == 0 {
		return nil
	}
	return record(tree.Park(run, parked))
}
