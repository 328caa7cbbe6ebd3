package agent

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/tree"
	"github.com/pawlrun/pawl/question"
	"github.com/pawlrun/pawl/stop"
)

// counts are how the calls of a cycle stand. They follow the calls that an event
// changes, because to look at all of them after each event takes the square of
// their number.
type counts struct {
	open, unresolved, fragments, granted, running, busy, waiting, pending, retrying, children, hooks int
}

func (t *counts) add(o counts, times int) {
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
	t.hooks += times * o.hooks
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (c *call) count() counts {
	return counts{
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
		hooks:      one(c.hooks.after.due != nil),
	}
}

// calls are the tool calls of a cycle's answer, with what is known of them without a
// look at each.
type calls struct {
	list []*call
	byID map[string]*call
	// questions are those about the calls. pending are the ones that nobody has
	// answered, nil until they are asked for; others have the slice as well, so it is
	// never changed.
	questions question.List
	pending   []*event.Question
	// stopBudget is the setting that refused a call of this cycle.
	stopBudget string
	// shown are the calls as the watch for repetition is shown them, listed once
	// somebody needs them.
	shown []stop.Asked

	total counts
	// first is the first call that may be open: those before it are done for good.
	first int
	// touched are the calls that the event which is being applied changes.
	touched []*call
	agenda  agenda
}

// agenda says which calls have to be looked at.
type agenda struct {
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

// begin forgets the calls of the cycle before.
func (s *calls) begin() {
	*s = calls{
		list: s.list[:0], touched: s.touched[:0], shown: s.shown, stopBudget: s.stopBudget,
		agenda: agenda{moved: s.agenda.moved[:0], behind: s.agenda.behind[:0]},
	}
}

// asked takes in the calls of an answer, which are n.
func (s *calls) asked(parts llm.Parts, n int) {
	all := make([]call, n)
	for _, p := range parts {
		if ref, ok := p.(llm.ToolCall); ok {
			c := &all[len(s.list)]
			c.index, c.ref = len(s.list), ref
			s.list = append(s.list, c)
		}
	}
	if n > few {
		s.byID = make(map[string]*call, n)
		for _, c := range slices.Backward(s.list) { // the first of an id is meant
			s.byID[c.ref.CallID] = c
		}
	}
}

// few calls are found without an index.
const few = 8

// ask takes in a question about a call.
func (s *calls) ask(c *call, d event.ToolPendingApproval) {
	c.pending, s.agenda.until = s.questions.Ask(d.Question()), tree.Sooner(s.agenda.until, d.ExpiresAt)
}

// asking reports whether there is nothing to do but wait for a person, whose time
// is not the run's.
func (s *calls) asking() bool { return s.total.busy == 0 && s.total.waiting > 0 }

// askingBelow reports whether the run waits for a person, and a child of it does.
func (s *calls) askingBelow() bool {
	return s.asking() && slices.ContainsFunc(s.unsettled(), (*call).childWaits)
}

// circumstances are what a call's next step depends on beside the call itself, as
// far as the events of another call change it.
type circumstances struct {
	taint         event.Taint
	late, overrun string
	cancelled     bool
}

func (m *Machine) circumstances() circumstances {
	return circumstances{taint: m.run.Taint, late: m.run.outOfTime(), overrun: m.run.Overrun, cancelled: m.run.Cancel != nil}
}

// touch is the call of that id, about to be changed; nil when there is none. The
// counts follow what becomes of it.
func (s *calls) touch(id string) *call {
	c := s.find(id)
	if c != nil {
		s.touched = append(s.touched, c)
	}
	return c
}

// find is the first call of that id.
func (s *calls) find(id string) *call {
	if s.byID != nil {
		return s.byID[id]
	}
	for _, c := range s.list {
		if c.ref.CallID == id {
			return c
		}
	}
	return nil
}

// unsettled are the calls from the first one on that is not done.
func (s *calls) unsettled() []*call {
	for s.first < len(s.list) && s.list[s.first].done() {
		s.first++
	}
	return s.list[s.first:]
}

// recount takes in what an event changed.
func (s *calls) recount(data event.Data) {
	switch data.(type) {
	case event.ModelResponse, event.RunResumed, event.RunForked, event.RunTerminatedBy:
		s.touched = append(s.touched[:0], s.list...)
	}
	for _, c := range s.touched {
		now := c.count()
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
		s.agenda.moved = append(s.agenda.moved, s.touched...)
	case event.BudgetReserved, event.BudgetCommitted: // what follows for calls is among the circumstances
	default: // may mean something for any call
		s.agenda.looked = 0
	}
	s.touched = s.touched[:0]
}

// gather brings the calls that moved, and those whose turn a hook's may be, into
// call order. At most turns hooks run at once.
func (s *calls) gather(among circumstances, now time.Time, turns int) {
	g := &s.agenda
	if g.until != nil && !now.Before(*g.until) {
		g.looked, g.until = 0, question.NextExpiry(s.open(), now)
	}
	if g.among != among {
		g.looked, g.among = 0, among
	}
	if g.looked == 0 {
		g.moved, g.behind = g.moved[:0], g.behind[:0]
		return
	}
	for ; turns > 0 && len(g.behind) > 0; g.behind = g.behind[1:] {
		if c := g.behind[0]; c.awaitsHook() {
			g.moved = append(g.moved, c)
			turns--
		}
	}
	g.moved = inOrder(g.moved)
}

// awaitsHook reports whether a hook is to run before anything is decided
// about the call.
func (c *call) awaitsHook() bool {
	return c.result == nil && c.verdict == nil && c.hooks.before.due != nil
}

// inOrder sorts calls by their place in the answer, each of them once.
func inOrder(list []*call) []*call {
	slices.SortFunc(list, func(a, b *call) int { return cmp.Compare(a.index, b.index) })
	return slices.Compact(list)
}

// toDecide are the calls that may have a step before them, in call order.
func (m *Machine) toDecide(due *actions) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		m.calls.gather(m.circumstances(), m.run.Now, m.run.cfg.Limits.MaxParallelTools)
		m.calls.visit(func(c *call) (moves, goOn bool) {
			before := len(*due)
			goOn = yield(c)
			return len(*due) > before, goOn
		})
	}
}

// visit shows look the calls on the agenda. A call is looked at again each time while
// something is due for it, or it waits for another attempt.
func (s *calls) visit(look func(*call) (due, goOn bool)) {
	g := &s.agenda
	moved, others := g.moved, s.list[g.looked:]
	g.moved, g.looked = g.moved[:0], len(s.list)
	waiting := len(g.behind)
	for _, list := range [...][]*call{moved, others} {
		for _, c := range list {
			due, goOn := look(c)
			if !goOn {
				return
			}
			switch {
			case due || c.retry.due():
				g.moved = append(g.moved, c)
			case c.awaitsHook():
				g.behind = append(g.behind, c)
			}
		}
	}
	if waiting > 0 && len(g.behind) > waiting {
		g.behind = inOrder(g.behind)
	}
}

// open are the questions that wait for a decision, in call order.
func (s *calls) open() []*event.Question {
	if s.total.pending > 0 && s.pending == nil {
		s.pending = s.questions.Open()
		slices.SortFunc(s.pending, func(a, b *event.Question) int { return s.find(a.ID).index - s.find(b.ID).index })
	}
	return s.pending
}
