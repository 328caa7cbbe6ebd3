package engine

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// commit writes what is staged, takes the commands that were answered out of the
// inbox, and then publishes. The commit after which the driver leaves gives the
// lease up as well.
func (d *driver) commit(ctx context.Context) error {
	if d.log.empty() {
		return nil
	}
	if err := d.log.sayOnce(); err != nil {
		return err
	}
	b := d.log.batch(d.status())
	b.Release = !d.log.lease.unmade && d.finished()
	pos, err := d.log.write(ctx, b)
	if err != nil {
		return err
	}
	d.above.tellUsed()
	d.log.publish(pos)
	d.effects.ended = 0
	return nil
}

// waits reports whether a run that is not made yet has nothing to do but to ask the
// run above for a part of its budget. It is made when the answer comes, or with the
// next beat of its lease.
func (d *driver) waits() bool {
	return d.log.lease.unmade && d.above.reserving && len(d.effects.queue) == 1
}

func (d *driver) status() journal.Progress {
	s := d.machine.State()
	st := journal.Progress{State: journal.Running, Cycles: s.Cycle}
	switch {
	case s.Phase == machine.Ended:
		st.State, st.Detail = journal.Ended, string(s.Outcome.Reason)
		st.Outcome, _ = json.Marshal(s.Outcome)
	case s.Parked != nil && s.Parked.Reason == event.ParkPaused:
		st.State, st.Detail = journal.Paused, string(s.Parked.Reason)
	case s.Parked != nil:
		st.State, st.Detail = journal.Parked, string(s.Parked.Reason)
	case d.alarm.waiting != "":
		st.State, st.Detail = journal.Waiting, d.alarm.waiting
	case s.Asking:
		st.State, st.Detail = journal.Waiting, string(event.ParkApproval)
	}
	return st
}
