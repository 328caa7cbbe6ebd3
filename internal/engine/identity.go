package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
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
	as    startedAs
	turns *turns
}

// begin sets the fields that the run's first event contains.
func (r *identity) begin(started event.RunStarted) {
	r.kind, r.name, r.maxDepth, r.traced = started.Kind, started.Name, started.MaxDepth, started.Trace
	if r.parent != "" {
		r.root, r.depth, r.step = cmp.Or(started.Root, r.parent), max(started.Depth, 2), started.Step
	}
}

// info returns the run's description for observers.
func (r *identity) info() RunInfo {
	return RunInfo{Run: r.id, Root: cmp.Or(r.root, r.id), Parent: r.parent, Kind: r.kind, Name: r.name, Began: r.birth, Trace: r.trace()}
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

// treeName is the name of a step's worktree: the root, and the steps from there
// down. Ids of steps contain no slashes. The index of an item becomes a part of
// its own, which cannot be the name of a step.
func (r *identity) treeName(step string) string {
	for at := r; at != nil; at = at.above {
		if at.step != "" {
			step = at.step + "." + step
		}
	}
	return r.root + "/" + strings.NewReplacer("[", ".", "]", "").Replace(step)
}

// turns counts the model calls of a tree by caller, for scripts that continue
// from one run to the next. It reads the tree's journal on first use.
type turns struct {
	store journal.Store
	root  string

	mu sync.Mutex
	// calls are those that were answered before, nil until the journal is read.
	calls []madeCall
	// asked counts the calls of this process by caller.
	asked map[askedAs]int
}

// madeCall is a call to a model with the names of the runs above it.
type madeCall struct {
	model string
	names []string
}

type askedAs struct{ model, name string }

// caller returns the caller of a model, and a function that takes back the count
// of an interrupted call, because the call is made again.
func (t *turns) caller(r *identity, model string) (c llm.Caller, interrupted func()) {
	var as *askedAs
	c = llm.Caller{Names: r.names, Turn: func(ctx context.Context, name string) (int, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := t.read(ctx); err != nil {
			return 0, err
		}
		as = &askedAs{model, name}
		n := t.asked[*as]
		t.asked[*as]++
		for _, c := range t.calls {
			if c.model == model && slices.Contains(c.names, name) {
				n++
			}
		}
		return n, nil
	}}
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if as != nil {
			t.asked[*as]--
		}
	}
}

// read counts the calls of the tree with a journalled outcome, and those of the
// runs that it was forked from.
func (t *turns) read(ctx context.Context) error {
	if t.asked != nil {
		return nil
	}
	var calls []madeCall
	for root := t.root; root != ""; {
		from, err := t.readTree(ctx, root, &calls)
		if err != nil {
			return fmt.Errorf("engine: count the model calls of run %s: %w", root, err)
		}
		root = from
	}
	t.calls, t.asked = calls, map[askedAs]int{}
	return nil
}

// readTree adds the calls of one tree, and returns the run that its root was forked from.
func (t *turns) readTree(ctx context.Context, root string, calls *[]madeCall) (from string, err error) {
	const page = 1000
	runs := map[string]*identity{}
	of := func(run string) *identity {
		if runs[run] == nil {
			runs[run] = &identity{}
		}
		return runs[run]
	}
	for pos := int64(0); ; {
		records, err := t.store.Tree(ctx, root, pos, page)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			pos = r.Pos
			e, err := event.Decode(r.Body)
			if err != nil {
				return "", err
			}
			switch d := e.Data.(type) {
			case event.RunStarted:
				of(r.Run).name = d.Name
			case event.RunForked:
				from = d.From
			case event.ChildStarted:
				of(d.Child).as = startedAs{d.Action(), d.Name, d.Step}
			case event.ModelResponse:
				*calls = append(*calls, madeCall{d.Model, of(r.Run).names()})
			case event.ModelAttemptFailed:
				if d.Class != llm.ClassInterrupted {
					*calls = append(*calls, madeCall{d.Model, of(r.Run).names()})
				}
			}
		}
		if len(records) < page {
			return from, nil
		}
	}
}

// startedAs is how a run knows one that it starts.
type startedAs struct{ id, agent, step string }

func asStarted(a *machine.StartChild) startedAs { return startedAs{a.ID, a.Name, a.Step} }

// names are those that the run is known by, the narrowest first: its step as it is shown,
// the step as its file names it, the part that it has in a loop ("judge"), what its parent
// calls its agent, and its own name.
func (r *identity) names() []string {
	var names []string
	if _, part, within := strings.Cut(r.as.id, "/"); within { // it looks at a step, and is none
		part, _, _ = strings.Cut(part, "/")
		names = append(names, part)
	} else if r.as.step != "" {
		names = append(names, r.as.step, bareStep(r.as.step))
	}
	return append(names, r.as.agent, r.name)
}

// bareStep is the id of a step without the loops around it and without its own pass.
func bareStep(id string) string {
	parts := strings.Split(id, ".")
	for len(parts) > 1 {
		if _, err := strconv.Atoi(parts[len(parts)-1]); err != nil {
			break
		}
		parts = parts[:len(parts)-1]
	}
	name, _, _ := strings.Cut(parts[len(parts)-1], "[")
	return name
}
