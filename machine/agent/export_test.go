package agent

import "github.com/pawlrun/pawl/machine"

// LookAgain has the machine look at each call of the cycle, as if it had not
// followed what the events changed.
func (m *Machine) LookAgain() {
	s := &m.calls
	s.total, s.first, s.agenda.looked, s.pending = counts{}, 0, 0, nil
	for _, c := range m.calls.list {
		c.counted, c.due = c.count(), nil
		s.total.add(c.counted, 1)
	}
}

// Looking is what is due, and how many calls the machine looks at to find that.
func (m *Machine) Looking() (due []machine.Action, looks int) {
	m.calls.gather(m.circumstances(), m.run.Now, m.run.cfg.Limits.MaxParallelTools)
	s := &m.calls
	looks = len(s.agenda.moved) - s.agenda.looked
	if due = m.Next(); s.agenda.looked == 0 {
		return due, len(m.calls.list) // which it looks at again
	}
	return due, looks + s.agenda.looked
}

// MediaSize is how many tokens a file takes at the most.
var MediaSize = mediaSize
