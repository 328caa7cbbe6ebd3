package agent

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/question"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/stop"
)

func (c *call) count() counts {
	return counts{
		open:       one(!c.done()),
		unresolved: one(c.resolved == nil),
		granted:    one(c.granted()),
		running:    one(c.works()),
		busy:       one(c.works() && !c.childWaits() || c.retry.due()),
		waiting:    one(c.waits() || c.childWaits()),
		children:   one(c.openChild()),
		asked:      one(len(c.asked) > 0),
		hooks:      one(c.hooks.after.due != nil),
		undecided:  one(c.undecided),
		behind:     one(c.undecided && c.behindHook()),
	}
}

// calls holds the tool calls of a cycle's answer, with derived state that avoids a look
// at each.
type calls struct {
	list []*call
	// pending holds the open questions, in call order, and until is when the next of
	// them expires. Callers keep the slice, so it is never changed.
	pending []*event.Question
	until   *time.Time
	// stopBudget is the setting that refused a call of this cycle.
	stopBudget string
	// shown holds the calls in the form that the repetition check sees, if it is on.
	shown []stop.PendingCall

	total counts
	// first is the first open call, and next the first undecided one.
	first, next int
	// touched holds the calls that the current event changes.
	touched []*call
}

// begin drops the calls of the previous cycle.
func (s *calls) begin() {
	*s = calls{list: s.list[:0], touched: s.touched[:0], shown: s.shown, stopBudget: s.stopBudget}
}

// addCalls adds the n calls of an answer.
func (s *calls) addCalls(parts llm.Parts, n int) {
	all := make([]call, n)
	for _, p := range parts {
		if ref, ok := p.(llm.ToolCall); ok {
			c := &all[len(s.list)]
			c.index, c.ref = len(s.list), ref
			s.list = append(s.list, c)
		}
	}
}

// ask folds a question about a call. An earlier question is void.
func (s *calls) ask(c *call, d event.ToolPendingApproval) {
	c.unask()
	c.pending = &question.Exchange{Question: d.Question()}
	s.until = tree.Sooner(s.until, d.ExpiresAt)
}

// askForm takes in what an attempt asks a person for.
func (s *calls) askForm(r *run, e *event.Event, d event.ToolInputRequired) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && !c.running {
		return fmt.Errorf("%w: attempt %d at %s asks for input without being in flight", ErrMisfit, d.Attempt, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) {
		c.running, c.form = d.Live, &question.Exchange{Question: d.Question()}
		c.forms++
		c.retry.spent += time.Duration(d.DurationMs) * time.Millisecond
		s.until = tree.Sooner(s.until, d.ExpiresAt)
	})
}

// applyTask folds that a call continues outside the run.
func (s *calls) applyTask(r *run, e *event.Event, d event.ToolTask) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && !c.running {
		return fmt.Errorf("%w: attempt %d at %s has a task without being in flight", ErrMisfit, d.Attempt, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) {
		c.kept = d.Task
		if d.Until != nil {
			c.running, c.deaths, c.retry.notBefore = false, 0, *d.Until
		}
	})
}

// asking reports whether the run waits only for a person, whose time is not the run's.
func (s *calls) asking() bool { return s.total.busy == 0 && s.total.waiting > 0 }

// askingBelow reports whether the run waits only for a person, and one of its children
// does.
func (s *calls) askingBelow() bool {
	return s.asking() && slices.ContainsFunc(s.unsettled(), (*call).childWaits)
}

// touch returns the call with an id for a change, nil if there is none. The counts
// follow the change.
func (s *calls) touch(id string) *call {
	c := s.find(id)
	if c != nil {
		s.touched = append(s.touched, c)
	}
	return c
}

// find returns the first call with an id.
func (s *calls) find(id string) *call {
	for _, c := range s.list {
		if c.ref.CallID == id {
			return c
		}
	}
	return nil
}

// unsettled returns the calls from the first one on that is not done.
func (s *calls) unsettled() []*call { return s.list[s.first:] }

// follow updates the counts after an event; tainted reports whether the event added
// taint. So what is due is found without a look at each call.
func (s *calls) follow(r *run, p *permissions, d event.Data, tainted bool) {
	late := s.until != nil && !r.Now.Before(*s.until)
	if late || tainted || concernsAll(d) {
		s.touched = append(s.touched[:0], s.list...)
	}
	for _, c := range s.touched {
		c.undecided, c.due = p.undecided(r, c), nil
		if c.openChild() && c.running {
			c.due = c.startChild(r)
		}
		now := c.count()
		s.total.add(c.counted, -1)
		s.total.add(now, 1)
		c.counted = now
		if c.undecided {
			s.next = min(s.next, c.index)
		}
		s.listQuestion(c)
	}
	s.touched = s.touched[:0]
	for s.first < len(s.list) && s.list[s.first].done() {
		s.first++
	}
	for s.next < len(s.list) && !s.list[s.next].undecided {
		s.next++
	}
	if late {
		s.until = question.NextExpiry(s.pending, r.Now)
	}
}

// concernsAll reports whether an event may affect every call.
func concernsAll(d event.Data) bool {
	switch d.(type) {
	case event.ModelResponse, event.RunResumed, event.RunForked, event.RunTerminatedBy, event.PermissionAdded, event.BudgetRaised:
		return true
	}
	return false
}

// listQuestion lists the question about a call while it waits for a decision.
func (s *calls) listQuestion(c *call) {
	var q *event.Question
	if c.waits() {
		q = c.openQuestion()
	}
	if q == c.listed {
		return
	}
	at, found := slices.BinarySearchFunc(s.pending, c.index, func(q *event.Question, index int) int { return s.find(q.ID).index - index })
	before, after := s.pending[:at], s.pending[at:]
	if found {
		after = after[1:]
	}
	switch c.listed = q; {
	case q == nil && at == 0:
		s.pending = after
	case q == nil:
		s.pending = slices.Concat(before, after)
	case at == len(s.pending):
		s.pending = append(s.pending, q) // its backing array is shared with callers
	default:
		s.pending = slices.Concat(before, []*event.Question{q}, after)
	}
	if len(s.pending) == 0 {
		s.pending = nil
	}
}

// behindHook reports whether the call waits for a hook before any other decision about
// it.
func (c *call) behindHook() bool {
	return c.resolved != nil && c.resolved.Problem == nil && c.verdict == nil && c.hooks.before.due != nil &&
		c.attempt == 0 && c.repeats.blocked == nil
}

// onOpen changes a call that has no result yet; an event after the result is a misfit.
func (s *calls) onOpen(r *run, e *event.Event, id string, change func(*call)) error {
	c := s.touch(id)
	switch {
	case r.phase != phaseTools || c == nil:
		return fmt.Errorf("%w: %s of %s, which is no call of cycle %d", ErrMisfit, e.Type(), id, r.cycle)
	case c.result != nil:
		return fmt.Errorf("%w: %s of %s, which is settled", ErrMisfit, e.Type(), id)
	}
	c.since = e.Time
	change(c)
	return nil
}

func (s *calls) applyStarted(r *run, e *event.Event, d event.ToolStarted) error {
	return s.onOpen(r, e, d.CallID, func(c *call) {
		if c.attempt == 0 {
			r.Spent.ToolCalls++
		}
		c.start(d.Attempt)
	})
}

// startable returns the calls that may start now, in call order, beside the running
// ones. limit bounds how many run at once; 0 means no limit.
func startable(mode Dispatch, calls []*call, running, limit int) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		openRead := mode == ParallelFirst && slices.ContainsFunc(calls, func(c *call) bool { return !c.done() && safe(c) })
		first := true // of the unsettled ones
		for i, c := range calls {
			if limit > 0 && running >= limit {
				return
			}
			if c.done() {
				continue
			}
			held := mode == ParallelFirst && !safe(c) && openRead
			if c.allowed() && !held && (first || !follows(mode, calls[:i], c)) {
				if running++; !yield(c) {
					return
				}
			}
			if first = false; barrier(mode, openRead, c) {
				return
			}
		}
	}
}

// barrier reports whether every call after an unsettled one waits for it; openRead
// whether a safe call is unsettled.
func barrier(mode Dispatch, openRead bool, c *call) bool {
	switch mode {
	case ParallelFirst:
		return !openRead
	case ByResource, ParallelAll:
		return !safe(c) && exclusive(c)
	case Serial:
		return true
	}
	return !safe(c)
}

// follows reports whether c must wait for an earlier call, given that some are
// unsettled and none of these is a barrier.
func follows(mode Dispatch, before []*call, c *call) bool {
	if mode == ByResource || mode == ParallelAll {
		return slices.ContainsFunc(before, func(other *call) bool { return !other.done() && conflict(other, c, mode == ByResource) })
	}
	return !safe(c)
}

// safe reports whether the call is read-only and concurrency-safe for its input. An
// agent may also run beside others if its file says so: its own rules judge its calls.
func safe(c *call) bool {
	return c.resolved.Concurrent && (c.resolved.ReadOnly || c.resolved.Agent)
}

// exclusive reports whether a call must run alone: it may touch everything, or it does
// not declare its resources and is not declared concurrency-safe.
func exclusive(c *call) bool {
	for _, a := range c.resolved.Access {
		if a.Key == everything && a.Write {
			return true
		}
	}
	return len(c.resolved.Access) == 0 && !c.resolved.Concurrent
}

// everything is the key that stands for all resources.
const everything = "*"

// conflict reports whether two calls must not overlap in time. If strict, a read
// without keys counts as a read of everything.
func conflict(a, b *call, strict bool) bool {
	if safe(a) && safe(b) {
		return false
	}
	if exclusive(a) || exclusive(b) {
		return true
	}
	for _, x := range accesses(a, strict) {
		for _, y := range accesses(b, strict) {
			if (x.Write || y.Write) && overlap(x.Key, y.Key) {
				return true
			}
		}
	}
	return false
}

func accesses(c *call, strict bool) []event.Access {
	if len(c.resolved.Access) == 0 && strict {
		return []event.Access{{Key: everything, Write: !c.resolved.ReadOnly}}
	}
	return c.resolved.Access
}

// overlap compares hierarchical keys: a directory overlaps everything inside it.
func overlap(a, b string) bool {
	return a == b || a == everything || b == everything || inside(a, b) || inside(b, a)
}

func inside(child, parent string) bool {
	return strings.HasPrefix(child, parent) && len(child) > len(parent) &&
		(strings.HasSuffix(parent, "/") || child[len(parent)] == '/')
}

// task returns the action that runs the call.
func (c *call) task(r *run) machine.RunTool {
	return machine.RunTool{
		CallID: c.ref.CallID, Attempt: c.attempt, Key: c.key(r.ID), Tool: c.ref.Name,
		Args: c.resolved.Args, Facts: c.resolved.Facts, Labels: c.resolved.Labels,
		MaxResultChars: r.cfg.Limits.MaxResultChars, Sought: stop.Sought(r.cfg.Conditions, c.ref.Name),
	}
}

func (c *call) startChild(r *run) machine.Action {
	call := c.task(r)
	a := machine.StartChild{
		ID: c.ref.CallID, Kind: Kind, Name: c.ref.Name, Input: c.resolved.Args, Taint: r.Taint, Call: &call,
	}
	if c.child == nil {
		call.Attempt++
	} else {
		a.Child = c.child.Child
	}
	return a
}

// perform requests the execution of a call: a tool to run, or an agent to start.
func (c *call) perform(r *run) machine.Action {
	if c.resolved.Agent {
		return c.startChild(r)
	}
	a := c.task(r)
	a.Attempt++
	a.Input = machine.Input{
		Answer: c.input, Task: c.kept, Patience: time.Duration(r.cfg.Approvals.Seconds * float64(time.Second)), OnExpiry: r.cfg.Approvals.OnTimeout,
	}
	a.Sandbox, a.NotBefore, a.Retries, a.Spent = c.verdict.Sandbox, c.retry.notBefore, c.mayRetry(&r.cfg), c.retry.spent
	if c.verdict.Decision == event.DecisionAsk && c.form == nil && c.kept == nil && c.resolved.Facts != nil && len(c.resolved.Facts.Runs) > 0 {
		// The model's arguments are dropped once they are resolved.
		again := machine.Resolve{CallID: c.ref.CallID, Call: c.ref, EditedBy: c.resolved.EditedBy}
		again.Call.Args, again.Call.ArgsText = c.resolved.Args, c.resolved.ArgsText
		a.Again = &again
	}
	return a
}
