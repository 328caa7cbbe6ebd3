package agent

import "github.com/pawlrun/pawl/machine"

// LookAgain has the machine look at each call of the cycle, as if it had not
// followed what the events changed.
func (m *Machine) LookAgain() {
	s := &m.standing
	s.total, s.first, s.looked, s.pending = tally{}, 0, 0, nil
	for _, c := range m.calls {
		c.counted, c.due = c.tally(), nil
		s.total.add(c.counted, 1)
	}
}

// Looking is what is due, and how many calls the machine looks at to find that.
func (m *Machine) Looking() (due []machine.Action, looks int) {
	m.gather()
	s := &m.standing
	looks = len(s.moved) - s.looked
	if due = m.Next(); s.looked == 0 {
		return due, len(m.calls) // which it looks at again
	}
	return due, looks + s.looked
}

// MediaSize is how many tokens a file takes at the most.
var MediaSize = mediaSize
