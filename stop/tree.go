package stop

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// trees bounds the remembered states of the working tree: alternating between fewer
// states is no change.
const trees = 64

// Work is the effect of a settled cycle on the working tree. The zero value is a cycle
// without an effect.
type Work struct {
	// States identify the content of the tree after the calls that may have changed it,
	// in order.
	States []string
	// Edited reports that a call was meant to change a file of the tree.
	Edited bool
	// Ran reports that a command ran that is not known to be read-only, and News that
	// some result of the cycle is new.
	Ran, News bool
}

// Add applies a settled call. news reports that its result is new.
func (w *Work) Add(facts *event.Facts, d *event.ToolResult, news bool) {
	w.News = w.News || news
	if facts == nil || d.Tree == "" {
		return
	}
	w.States = append(w.States, d.Tree)
	w.Ran = w.Ran || runs(facts)
	w.Edited = w.Edited || edits(facts)
}

func runs(f *event.Facts) bool { return len(f.Commands) > 0 }

func edits(f *event.Facts) bool {
	return slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Write && !p.Outside && !p.Alias })
}

// Works reports whether a call with these facts (nil for none) changes the working tree
// or runs a program that may.
func Works(f *event.Facts) bool {
	return f != nil && f.Risk != event.RiskRead && (runs(f) || edits(f))
}

// Worked records a settled cycle. A cycle that brings the working tree into a new state
// is progress, whatever else happens. A cycle that edits without doing so is counted.
// After an edit without effect, so is a cycle that runs a command without a new result.
// Everything else is exploration and may take any time: a run that never tries to
// change a file is never counted.
func (r *Repetition) Worked(w Work) {
	fresh := false
	for _, state := range w.States {
		if !slices.Contains(r.states, state) {
			fresh = true
			r.states = append(r.states, state)
		}
	}
	if n := len(r.states); n > trees {
		r.states = slices.Delete(r.states, 0, n-trees)
	}
	n := r.count[UnchangedTree.index()]
	switch {
	case fresh:
		r.set(UnchangedTree, 0)
	case w.Edited, n > 0 && w.Ran && !w.News:
		r.set(UnchangedTree, n+1)
	}
}
