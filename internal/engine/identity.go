package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
)

// identity is which run it is and its place in the tree of runs. It does not
// change while the run is driven.
type identity struct {
	id, kind, name string
	// parent started the run, root is the root of the tree, and step is the workflow
	// step that the run carries out, empty for none.
	parent, root, step string
	// depth is the run's level in the tree; the root's is 1. maxDepth is how deep
	// runs below may be, 0 if unset.
	depth, maxDepth int
	// traced is the trace in the run's first event, and birth the time of that
	// event.
	traced event.Trace
	birth  time.Time
	// above is the parent if this engine drives it, as is the id by which the parent
	// knows this run, and turns counts the model calls of the tree.
	above *identity
	as    drive.StartedAs
	turns *drive.Turns
}

// begin sets the fields that the run's first event contains.
func (r *identity) begin(started event.RunStarted) {
	r.kind, r.name, r.maxDepth, r.traced = started.Kind, started.Name, started.MaxDepth, started.Trace
	if r.parent != "" {
		r.root, r.depth, r.step = cmp.Or(started.Root, r.parent), max(started.Depth, 2), started.Step
	}
}

// info returns the run's description for observers.
func (r *identity) info() perform.RunInfo {
	return perform.RunInfo{Run: r.id, Root: cmp.Or(r.root, r.id), Parent: r.parent, Kind: r.kind, Name: r.name, Began: r.birth, Trace: r.trace()}
}

// trace returns the trace of the run: that in its first event, or one that
// follows from its place in the tree.
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

// setPlace sets the place of a child in the tree. Runs below the child may be most
// levels deep, 0 for as many as the tree allows.
func (r *identity) setPlace(started *event.RunStarted, step string, most int) {
	started.Root, started.Parent, started.Step, started.Depth = r.root, r.id, step, r.depth+1
	if deepest := r.deepest(); most > 0 {
		started.MaxDepth = min(deepest, r.depth+most)
	} else if deepest != event.MaxDepth {
		started.MaxDepth = deepest
	}
}

// traceBelow returns the trace of a child, and of the call that it answers, if
// any.
func (r *identity) traceBelow(call *machine.RunTool) event.Trace {
	if call != nil {
		return r.trace().Below(r.id, call.CallID)
	}
	return r.trace().Below(r.id, "")
}

// deepest is the depth that runs below this one may have.
func (r *identity) deepest() int { return cmp.Or(r.maxDepth, event.MaxDepth) }

// path returns the names of the runs from the root down to this one.
func (r *identity) path() []string {
	var names []string
	for at := r; at != nil; at = at.above {
		names = append(names, cmp.Or(at.name, at.id))
	}
	slices.Reverse(names)
	return names
}

// place returns the place that the effects of the run need.
func (r *identity) place() perform.Place {
	return perform.Place{Run: r.id, Parent: r.parent, Step: r.step, Worktrees: r.worktrees()}
}

// worktrees is the beginning of the names of the worktrees of the run's steps: the root,
// and the steps from there down. Ids of steps contain no slashes. The index of an item
// becomes a part of its own, which cannot be the name of a step.
func (r *identity) worktrees() string {
	steps := ""
	for at := r; at != nil; at = at.above {
		if at.step != "" {
			steps = at.step + "." + steps
		}
	}
	return r.root + "/" + strings.NewReplacer("[", ".", "]", "").Replace(steps)
}

// names are those by which a script knows the run.
func (r *identity) names() []string { return r.as.Names(r.name) }
