package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// mostStaged bounds how many decisions a machine may make without an effect: a
// machine that never stops deciding is broken and must not fill the memory. A loop
// over 10,000 items decides twice about each step that its condition skips. Each
// call of an answer takes a few decisions, and so does each child and each
// settled effect.
func (d *driver) mostStaged() int {
	return 200_000 + 20*(d.log.calls.Len()+len(d.children.active)+d.effects.ended)
}

// decide performs the actions that are due now and reports whether more may be
// due because of them.
func (d *driver) decide(work context.Context) (bool, error) {
	if len(d.log.staged) > d.mostStaged() {
		return false, fmt.Errorf("engine: run %s: the machine decided %d times without an effect", d.run.id, len(d.log.staged))
	}
	d.alarm = alarm{}
	if d.life.interrupted && !d.life.cancelled {
		if progress, err := d.keepAnswer(); progress || err != nil {
			return progress, err
		}
		return false, d.parkInterrupted()
	}
	progress := false
	var ask *machine.Ask
	for _, a := range d.machine.Next() {
		var err error
		changed := true
		switch a := a.(type) {
		case machine.Record:
			err = d.stage(a.Data)
		case machine.Resolve:
			err = d.stage(d.env.Resolve(a))
		case machine.CheckAnswer:
			err = d.stage(drive.CheckAnswer(a))
		case machine.CallModel:
			changed, err = d.calls.beginModel(&a)
		case machine.RunTool:
			changed, err = d.calls.beginTool(a)
		case machine.RunCommand:
			changed, err = d.calls.beginCommand(a)
		case machine.StartChild:
			changed, err = d.children.begin(work, a)
		case machine.Deliver:
			d.mail.handOver(a)
			changed = false
		case machine.CancelChild:
			d.children.cancelChild(a)
			changed = false
		case machine.Reserve:
			err = d.above.reserve(a)
			changed = false
		case machine.Wait:
			changed, err = d.calls.wait(a)
		case machine.Evaluate:
			err = d.stage(d.env.EvaluateExpression(d.life.work, a))
		case machine.Observe:
			err = d.stage(d.env.Observe(d.life.work, a))
		case machine.RunHook:
			d.calls.beginHook(a)
			changed = false
		case machine.Ask:
			ask = &a
			changed = false
		default:
			err = fmt.Errorf("engine: run %s: the machine asks for %T, which this driver cannot do", d.run.id, a)
		}
		if err != nil {
			return false, err
		}
		progress = progress || changed
	}
	if ask != nil {
		asked, err := d.questions.begin(*ask)
		return progress || asked, err
	}
	return progress, nil
}

// keepAnswer journals the calls of an answer that arrived while the run stops:
// only a call's own event contains its arguments, so they would be lost
// otherwise.
func (d *driver) keepAnswer() (progress bool, err error) {
	for _, a := range d.machine.Next() {
		var keep event.Data
		switch a := a.(type) {
		case machine.Resolve:
			keep = d.env.Resolve(a)
		case machine.Record:
			switch a.Data.(type) {
			case event.BudgetCommitted, event.ToolCall:
				keep = a.Data
			}
		}
		if keep == nil {
			continue
		}
		if err := d.stage(keep); err != nil {
			return progress, err
		}
		progress = true
	}
	return progress, nil
}

// parkInterrupted parks once every effect has stopped.
func (d *driver) parkInterrupted() error {
	if len(d.effects.pending) > 0 || d.machine.State().Phase != machine.Running {
		return nil
	}
	return d.stage(event.RunParked{Reason: event.ParkInterrupted, Served: d.engine.opts.Served})
}

// moveDeadlines applies the machine's deadline to the effects.
func (c *core) moveDeadlines() {
	c.effects.deadlines.Move(c.machine.State().Deadline, c.env.Clock.Counted)
}

// wait journals the intent of a wait, and its settlement when its time comes.
// Until then it sets the alarm.
func (cs *calls) wait(a machine.Wait) (bool, error) {
	switch {
	case !a.Begun:
		return true, cs.stage(event.WaitStarted{ID: a.ID, Until: a.Until})
	case !a.Until.After(cs.env.Clock.Now()):
		return true, cs.stage(event.WaitFinished{ID: a.ID})
	}
	cs.alarm.set(a.Until)
	if len(cs.effects.pending) == 0 {
		cs.alarm.waiting = journal.WaitTime
	}
	return false, nil
}
