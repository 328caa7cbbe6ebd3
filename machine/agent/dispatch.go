package agent

import (
	"strings"
)

// Dispatch is the order in which the calls of one answer run.
type Dispatch string

// The dispatch modes (REQUIREMENTS C-3).
const (
	// OrderedGroups runs adjacent concurrency-safe reads together and
	// everything else alone, in the model's order.
	OrderedGroups Dispatch = "ordered-groups"
	// ParallelFirst runs every concurrency-safe read together, then the rest
	// one at a time (Alfred).
	ParallelFirst Dispatch = "parallel-first"
	// ByResource also runs calls together whose resources do not overlap.
	ByResource Dispatch = "by-resource"
	// ParallelAll runs all together, except that overlapping resources and
	// exclusive tools take turns (ALDO).
	ParallelAll Dispatch = "parallel-all"
	// Serial runs one call at a time.
	Serial Dispatch = "serial"
)

// startable returns the calls that may start now, in call order. limit bounds
// how many run at once.
func startable(mode Dispatch, calls []*call, limit int) []*call {
	running := 0
	for _, c := range calls {
		if c.running {
			running++
		}
	}
	var ready []*call
	for i, c := range calls {
		if limit > 0 && running+len(ready) >= limit {
			break
		}
		if c.allowed() && !held(mode, calls, i) {
			ready = append(ready, c)
		}
	}
	return ready
}

// held says that an unsettled call stands before calls[i].
func held(mode Dispatch, calls []*call, i int) bool {
	c := calls[i]
	for j, other := range calls {
		if j == i || other.result != nil {
			continue
		}
		if j < i && precedes(mode, other, c) {
			return true
		}
		if j > i && mode == ParallelFirst && !safe(c) && safe(other) {
			return true
		}
	}
	return false
}

// precedes says that c, which the model asked for later, must wait for other.
func precedes(mode Dispatch, other, c *call) bool {
	switch mode {
	case ParallelFirst:
		return !safe(c)
	case ByResource:
		return !(safe(other) && safe(c)) && conflict(other, c)
	case ParallelAll:
		return conflict(other, c)
	case Serial:
		return true
	}
	return !safe(other) || !safe(c)
}

// safe is ALF-56: read-only and concurrency-safe for this call's input.
func safe(c *call) bool { return c.resolved.ReadOnly && c.resolved.Concurrent }

// conflict says that two calls must not overlap in time. A call that does not
// say what it touches and may write conflicts with everything.
func conflict(a, b *call) bool {
	if len(a.resolved.Access) == 0 && !safe(a) && !a.resolved.Concurrent {
		return true
	}
	if len(b.resolved.Access) == 0 && !safe(b) && !b.resolved.Concurrent {
		return true
	}
	for _, x := range a.resolved.Access {
		for _, y := range b.resolved.Access {
			if (x.Write || y.Write) && overlap(x.Key, y.Key) {
				return true
			}
		}
	}
	return false
}

// overlap compares hierarchical keys: a directory overlaps what is inside it.
func overlap(a, b string) bool {
	return a == b || a == "*" || b == "*" || inside(a, b) || inside(b, a)
}

func inside(child, parent string) bool {
	return strings.HasPrefix(child, parent) && len(child) > len(parent) &&
		(strings.HasSuffix(parent, "/") || child[len(parent)] == '/')
}
