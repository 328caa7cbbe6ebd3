package agent

// LookAgain has the machine look at each call of the cycle, as if it had not
// followed what the events changed.
func (m *Machine) LookAgain() {
	s := &m.standing
	s.total, s.first, s.rested, s.pending = tally{}, 0, false, nil
	for _, c := range m.calls {
		c.counted, c.due = c.tally(), nil
		s.total.add(c.counted, 1)
	}
}

// ToDecide is how many calls the machine looks at when it is asked what is due.
func (m *Machine) ToDecide() int { return len(m.toDecide()) }

// MediaSize is how many tokens a file takes at the most.
var MediaSize = mediaSize
