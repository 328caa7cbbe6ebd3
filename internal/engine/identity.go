package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// identity says which run it is and where it stands in the tree of runs. It does not
// change while the run is driven.
type identity struct {
	id, kind, name string
	// parent started the run, root is the first of the runs above; step is the step of
	// a workflow that the run is, empty for none.
	parent, root, step string
	// depth is how deep the run is below the root, both counted, and maxDepth how deep
	// runs below may be, 0 where nobody said.
	depth, maxDepth int
	// traced is the trace of the run's first event, and birth when that was.
	traced event.Trace
	birth  time.Time
	// above is the run that started this one, where this engine drives it, as is how it
	// knows this one, and turns counts the model calls of the tree.
	above *identity
	as    startedAs
	turns *turns
}

// begin takes in what the run's first event says of it.
func (r *identity) begin(started event.RunStarted) {
	r.kind, r.name, r.maxDepth, r.traced = started.Kind, started.Name, started.MaxDepth, started.Trace
	if r.parent != "" {
		r.root, r.depth, r.step = cmp.Or(started.Root, r.parent), max(started.Depth, 2), started.Step
	}
}

// info is what observers are told of the run.
func (r *identity) info() RunInfo {
	return RunInfo{Run: r.id, Root: cmp.Or(r.root, r.id), Parent: r.parent, Kind: r.kind, Name: r.name, Began: r.birth, Trace: r.trace()}
}

// trace is what tells of the run: what its first event says, or of one that had none
// what follows from its place in the tree.
func (r *identity) trace() event.Trace {
	if r.traced.ID != "" {
		return r.traced
	}
	t := event.NewTrace(cmp.Or(r.root, r.id))
	if r.parent != "" {
		t.Parent = t.Span(r.parent, "")
	}
	return t
}

// place says where in the tree a child of the run stands, whose own runs may be as
// many levels deep as most says, 0 for as many as the tree has room for.
func (r *identity) place(started *event.RunStarted, step string, most int) {
	started.Root, started.Parent, started.Step, started.Depth = r.root, r.id, step, r.depth+1
	if deepest := r.deepest(); most > 0 {
		started.MaxDepth = min(deepest, r.depth+most)
	} else if deepest != event.MaxDepth {
		started.MaxDepth = deepest
	}
}

// traceBelow is the trace of a child, for a call where it answers one.
func (r *identity) traceBelow(call *machine.RunTool) event.Trace {
	if call != nil {
		return r.trace().Below(r.id, call.CallID)
	}
	return r.trace().Below(r.id, "")
}

// deepest is the depth that runs below this one may have.
func (r *identity) deepest() int { return cmp.Or(r.maxDepth, event.MaxDepth) }

// path are the names of the runs from the root down to this one.
func (r *identity) path() []string {
	var names []string
	for at := r; at != nil; at = at.above {
		names = append(names, cmp.Or(at.name, at.id))
	}
	slices.Reverse(names)
	return names
}

// treeName is the name of a step's worktree: the run at the top, and the steps from
// there down. The ids of steps have no slashes, and the index of an item becomes a part
// of its own, which no step has as its name.
func (r *identity) treeName(step string) string {
	for at := r; at != nil; at = at.above {
		if at.step != "" {
			step = at.step + "." + step
		}
	}
	return r.root + "/" + strings.NewReplacer("[", ".", "]", "").Replace(step)
}
