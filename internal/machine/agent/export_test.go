package agent

import (
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// Recount has the machine look at each call of the cycle, as if it had not
// followed what the events changed.
func (m *Machine) Recount() {
	s := &m.calls
	s.total, s.first, s.next, s.pending = counts{}, 0, 0, nil
	for _, c := range s.list {
		c.counted, c.listed = counts{}, nil
	}
	s.follow(&m.run, &m.permissions, event.RunResumed{}, true)
}

// Looking is what is due, and how many calls the machine looks at to find that.
func (m *Machine) Looking() (due []machine.Action, looks int) {
	if m.run.phase == phaseTools && m.calls.total.unresolved == 0 {
		in := m.situation()
		m.calls.eachToDecide(&in, func(*call) { looks++ })
	}
	return m.Next(), looks
}

// MediaSize is how many tokens a file takes at the most.
var MediaSize = mediaSize
