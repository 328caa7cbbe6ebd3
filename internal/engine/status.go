package engine

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

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
