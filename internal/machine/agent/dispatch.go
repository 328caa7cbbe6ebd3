package agent

import (
	"iter"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/stop"
)

// startable are the calls that may start now, in call order, beside those
// that run. limit bounds how many run at once; 0 bounds nothing.
func startable(mode Dispatch, calls []*call, running, limit int) iter.Seq[*call] {
	return func(yield func(*call) bool) {
		openRead := mode == ParallelFirst && slices.ContainsFunc(calls, func(c *call) bool { return !c.done() && safe(c) })
		first := true // of those that are unsettled
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

// barrier reports whether every call behind an unsettled one waits for it;
// openRead that a call which is safe is unsettled.
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

// follows reports whether c must wait for one of the calls before it, of which
// some are unsettled and none of these is a barrier.
func follows(mode Dispatch, before []*call, c *call) bool {
	if mode == ByResource || mode == ParallelAll {
		return slices.ContainsFunc(before, func(other *call) bool { return !other.done() && conflict(other, c, mode == ByResource) })
	}
	return !safe(c)
}

// safe is ALF-56: read-only and concurrency-safe for this call's input. An agent may also
// run beside others where its file says so: what it may do its own rules judge.
func safe(c *call) bool {
	return c.resolved.Concurrent && (c.resolved.ReadOnly || c.resolved.Agent)
}

// exclusive reports whether a call must be alone: it may touch everything, or it
// does not say what it touches and is not declared fit to run beside others.
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

// conflict reports whether two calls must not overlap in time. strict takes a read
// without keys for a read of everything.
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

// overlap compares hierarchical keys: a directory overlaps what is inside it.
func overlap(a, b string) bool {
	return a == b || a == everything || b == everything || inside(a, b) || inside(b, a)
}

func inside(child, parent string) bool {
	return strings.HasPrefix(child, parent) && len(child) > len(parent) &&
		(strings.HasSuffix(parent, "/") || child[len(parent)] == '/')
}

// task is a call as whoever performs it needs it.
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

// perform asks for a call to be made: a tool to run, or an agent to begin.
func (c *call) perform(r *run) machine.Action {
	if c.resolved.Agent {
		return c.startChild(r)
	}
	a := c.task(r)
	a.Attempt++
	a.Sandbox, a.NotBefore, a.Retries, a.Spent = c.verdict.Sandbox, c.retry.notBefore, c.mayRetry(&r.cfg), c.retry.spent
	if c.verdict.Decision == event.DecisionAsk && c.resolved.Facts != nil && len(c.resolved.Facts.Runs) > 0 {
		// What the model said is dropped once it is resolved.
		again := machine.Resolve{CallID: c.ref.CallID, Call: c.ref, EditedBy: c.resolved.EditedBy}
		again.Call.Args, again.Call.ArgsText = c.resolved.Args, c.resolved.ArgsText
		a.Again = &again
	}
	return a
}
