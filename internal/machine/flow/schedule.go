package flow

import (
	"container/heap"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// ready contains the steps of a scope that wait only for concurrency, in the order of
// the scope's scheduler. Schedulers that distinguish agents have one queue per agent.
type ready struct {
	of     plan.Scheduler
	groups []*group
}

type group struct {
	agent string
	steps queue[*node]
	// turn is the turn in which a step of the group last started.
	turn int64
}

func (r *ready) push(n *node) {
	agent, key := "", int64(n.place)
	switch r.of {
	case plan.RoundRobin, plan.LeastBusy:
		agent = n.agent()
	default:
		key = -int64(n.vertex.below)
	}
	r.group(agent).steps.push(key, int64(n.place), n)
}

func (r *ready) group(agent string) *group {
	for _, g := range r.groups {
		if g.agent == agent {
			return g
		}
	}
	g := &group{agent: agent}
	r.groups = append(r.groups, g)
	return g
}

// pop removes and returns the next step to begin, nil for none. It skips steps that
// were stopped while queued.
func (r *ready) pop(atWork map[string]int, turn int64) *node {
	for {
		var best *group
		for _, g := range r.groups {
			if g.steps.empty() {
				continue
			}
			if best == nil || r.before(g, best, atWork) {
				best = g
			}
		}
		if best == nil {
			return nil
		}
		if n := best.steps.pop(); n.phase == queued {
			best.turn = turn
			return n
		}
	}
}

func (r *ready) before(a, b *group, atWork map[string]int) bool {
	if r.of == plan.LeastBusy && atWork[a.agent] != atWork[b.agent] {
		return atWork[a.agent] < atWork[b.agent]
	}
	return a.turn < b.turn || a.turn == b.turn && a.steps.first().place < b.steps.first().place
}

// agent returns the name by which schedulers group steps.
func (n *node) agent() string {
	switch s := n.step(); {
	case s.Agent != nil:
		return s.Agent.Name
	case s.Func != nil:
		return s.Func.Name
	case s.Run != nil:
		return s.Run.Name
	}
	return ""
}

// leaf reports whether a step has no graph of its own.
func (n *node) leaf() bool { return n.vertex.body == nil }

// queue marks a step as ready to begin when concurrency allows.
func (m *Machine) queue(n *node) {
	n.phase = queued
	n.in.ready.push(n)
	m.wake(n.in)
}

// wake marks a scope and the enclosing scopes as startable.
func (m *Machine) wake(s *scope) {
	for ; s.in != nil; s = s.in.in {
		if s.pass != nil && !s.pass.startable {
			s.pass.startable = true
			s.pass.of.startable.push(int64(s.pass.index), 0, s)
		}
		m.markStartable(s.in)
	}
}

// markStartable marks a step that contains work that may begin.
func (m *Machine) markStartable(n *node) {
	if !n.startable {
		n.startable = true
		n.in.startable.push(int64(n.place), 0, n)
	}
}

// fill begins as much work as concurrency allows.
func (m *Machine) fill() {
	if m.root == nil || m.paused || m.Cancel != nil || m.Terminated != nil {
		return
	}
	for {
		begin := m.takeFrom(m.root)
		if begin == nil {
			return
		}
		m.turns++
		begin()
	}
}

// takeFrom returns a function that begins the next work in a scope, nil for none.
// Queued steps come before work inside active steps, because other steps have waited
// longer for them.
func (m *Machine) takeFrom(s *scope) (begin func()) {
	if s.stopped || s.limit > 0 && s.busy >= s.limit {
		return nil
	}
	if w := s.graph.plan.Width; w == 0 || s.under < w {
		if n := s.ready.pop(m.atWork, m.turns+1); n != nil {
			return func() { m.start(n) }
		}
	}
	for !s.startable.empty() {
		n := s.startable.first()
		if begin := m.takeBelow(n); begin != nil {
			return begin
		}
		s.startable.pop()
		n.startable = false
	}
	return nil
}

func (m *Machine) takeBelow(n *node) (begin func()) {
	switch {
	case n.phase != working || n.stop != nil:
		return nil
	case n.sub != nil:
		return m.takeFrom(n.sub)
	case n.loop != nil:
		return m.takeFromLoop(n.loop)
	}
	return nil
}

// busy adds by to the number of active children of a scope and its enclosing scopes.
func (m *Machine) busy(s *scope, agent string, by int) {
	m.atWork[agent] += by
	for at := s; ; at = at.in.in {
		if at.busy += by; at.in == nil {
			break
		}
	}
	if by < 0 {
		m.wake(s)
	}
}

// start begins an attempt at a step.
func (m *Machine) start(n *node) {
	n.phase = working
	n.attempt++
	n.count(1)
	if missing := m.missing(n); missing != nil {
		m.finish(n, event.StepFinished{Status: event.StepStatusFailed, Error: missing})
		return
	}
	if n.leaf() {
		m.startChild(n)
		return
	}
	m.startBelow(n)
}

// lasts returns the time limit of a step with everything in it; 0 means no limit.
func lasts(s *plan.Step) time.Duration {
	if s.Plan != nil && s.Plan.Timeout > 0 && (s.Timeout == 0 || s.Plan.Timeout < s.Timeout) {
		return s.Plan.Timeout
	}
	return s.Timeout
}

// queue is a priority queue. Elements with equal keys leave it in the order of
// insertion.
type queue[T any] struct{ list list[T] }

type entry[T any] struct {
	key, put int64
	value    T
}

type list[T any] []entry[T]

func (l list[T]) Len() int { return len(l) }
func (l list[T]) Less(i, j int) bool {
	return l[i].key < l[j].key || l[i].key == l[j].key && l[i].put < l[j].put
}
func (l list[T]) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *list[T]) Push(x any)   { *l = append(*l, x.(entry[T])) }
func (l *list[T]) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = entry[T]{}
	*l = (*l)[:last]
	return x
}

func (q *queue[T]) push(key, put int64, v T) { heap.Push(&q.list, entry[T]{key, put, v}) }
func (q *queue[T]) empty() bool              { return len(q.list) == 0 }
func (q *queue[T]) first() T                 { return q.list[0].value }
func (q *queue[T]) pop() T                   { return heap.Pop(&q.list).(entry[T]).value }
