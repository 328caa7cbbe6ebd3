package agent

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/question"
)

// tally counts how the calls of a cycle stand. It follows the calls that an event
// changes, because to look at all of them after each event takes the square of
// their number.
type tally struct {
	open, unresolved, fragments, granted, running, busy, waiting, pending, retrying, children, unheard int
}

func (t *tally) add(o tally, times int) {
	t.open += times * o.open
	t.unresolved += times * o.unresolved
	t.fragments += times * o.fragments
	t.granted += times * o.granted
	t.running += times * o.running
	t.busy += times * o.busy
	t.waiting += times * o.waiting
	t.pending += times * o.pending
	t.retrying += times * o.retrying
	t.children += times * o.children
	t.unheard += times * o.unheard
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (c *call) tally() tally {
	return tally{
		open:       one(!c.done()),
		unresolved: one(c.resolved == nil),
		fragments:  one(c.resolved != nil && c.fragment()),
		granted:    one(c.granted()),
		running:    one(c.running),
		busy:       one(c.running && !c.childWaits() || c.retry.due()),
		waiting:    one(c.waits() || c.childWaits()),
		pending:    one(c.waits()),
		retrying:   one(c.retry.due()),
		children:   one(c.openChild()),
		unheard:    one(c.hooks.after.due != nil),
	}
}

// standing is what is known of the calls of a cycle without a look at each.
type standing struct {
	total tally
	byID  map[string]*call
	// first is the first call that may be open: those before it are done for good.
	first int
	// pending are the questions that nobody has answered, nil until they are asked
	// for. Others have the slice as well, so it is never changed.
	pending []*event.Question
	// touched are the calls that the event which is being applied changes.
	touched []*call
	// looked is how many calls, from the first on, were looked at in these
	// circumstances. None of them has a step before it until a time, but for those
	// that had one then and those that have changed since, which moved holds.
	looked int
	among  circumstances
	until  *time.Time
	moved  []*call
	// behind are those of the calls that were looked at which wait for a hook's
	// turn, in call order.
	behind []*call
}

// circumstances are what a call's next step depends on beside the call itself, as
// far as the events of another call change it.
type circumstances struct {
	taint         event.Taint
	late, overrun string
	cancelled     bool
}

func (m *Machine) circumstances() circumstances {
	return circumstances{taint: m.run.Taint, late: m.outOfTime(), overrun: m.run.Overrun, cancelled: m.run.Cancel != nil}
}

// call is the cycle's call of that id, about to be changed; nil when there is none.
func (m *Machine) call(id string) *call {
	c := m.standing.byID[id]
	if c != nil {
		m.standing.touched = append(m.standing.touched, c)
	}
	return c
}

// byID finds calls by their ids; the first of an id is meant.
func byID(calls []*call) map[string]*call {
	found := make(map[string]*call, len(calls))
	for _, c := range calls {
		if found[c.ref.CallID] == nil {
			found[c.ref.CallID] = c
		}
	}
	return found
}

// unsettled are the calls from the first one on that is not done.
func (m *Machine) unsettled() []*call {
	s := &m.standing
	for s.first < len(m.calls) && m.calls[s.first].done() {
		s.first++
	}
	return m.calls[s.first:]
}

// recount takes in what an event changed.
func (m *Machine) recount(data event.Data) {
	s := &m.standing
	switch data.(type) {
	case event.ModelResponse, event.RunResumed, event.RunForked, event.RunTerminatedBy:
		s.touched = append(s.touched[:0], m.calls...)
	}
	for _, c := range s.touched {
		now := c.tally()
		if now.pending+c.counted.pending > 0 {
			s.pending = nil
		}
		s.total.add(c.counted, -1)
		s.total.add(now, 1)
		c.counted, c.due = now, nil
	}
	switch data.(type) {
	case event.PolicyDecision, event.ToolStarted, event.ToolResult, event.HookResult, event.ToolPendingApproval,
		event.ToolApprovalResolved, event.ChildStarted, event.ChildParked, event.ChildWaiting, event.ChildFinished:
		s.moved = append(s.moved, s.touched...)
	case event.BudgetReserved, event.BudgetCommitted: // what follows for calls is among the circumstances
	default: // may mean something for any call
		s.looked = 0
	}
	s.touched = s.touched[:0]
}

// gather brings the calls that moved, and those whose turn a hook's may be, into
// call order.
func (m *Machine) gather() {
	s := &m.standing
	if s.until != nil && !m.run.Now.Before(*s.until) {
		s.looked, s.until = 0, question.NextExpiry(m.pending(), m.run.Now)
	}
	if now := m.circumstances(); s.among != now {
		s.looked, s.among = 0, now
	}
	if s.looked == 0 {
		s.moved, s.behind = s.moved[:0], s.behind[:0]
		return
	}
	for turns := m.cfg.Limits.MaxParallelTools; turns > 0 && len(s.behind) > 0; s.behind = s.behind[1:] {
		if c := s.behind[0]; c.awaitsHook() {
			s.moved = append(s.moved, c)
			turns--
		}
	}
	slices.SortFunc(s.moved, byIndex)
	s.moved = slices.Compact(s.moved)
}

// awaitsHook reports whether a hook is to be heard before anything is decided
// about the call.
func (c *call) awaitsHook() bool {
	return c.result == nil && c.verdict == nil && c.hooks.before.due != nil
}

func byIndex(a, b *call) int { return cmp.Compare(a.index, b.index) }

// toDecide are the calls that may have a step before them, in call order. What is
// due for a call, or waits for another attempt, is looked at each time.
func (m *Machine) toDecide() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		m.gather()
		s := &m.standing
		moved, others := s.moved, m.calls[s.looked:]
		s.moved, s.looked = s.moved[:0], len(m.calls)
		waiting := len(s.behind)
		for _, calls := range [...][]*call{moved, others} {
			for _, c := range calls {
				due := len(m.actions)
				if !yield(c) {
					return
				}
				switch {
				case len(m.actions) > due || c.retry.due():
					s.moved = append(s.moved, c)
				case c.awaitsHook():
					s.behind = append(s.behind, c)
				}
			}
		}
		if waiting > 0 && len(s.behind) > waiting {
			slices.SortFunc(s.behind, byIndex)
			s.behind = slices.Compact(s.behind)
		}
	}
}

// pending are the questions that wait for a decision, in call order.
func (m *Machine) pending() []*event.Question {
	s := &m.standing
	if s.total.pending > 0 && s.pending == nil {
		s.pending = m.questions.Open()
		slices.SortFunc(s.pending, func(a, b *event.Question) int { return s.byID[a.ID].index - s.byID[b.ID].index })
	}
	return s.pending
}
