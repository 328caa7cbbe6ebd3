package drive

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Turns counts the model calls of a tree by caller, for scripts that continue
// from one run to the next. It reads the tree's journal on first use.
type Turns struct {
	store journal.Store
	root  string

	mu sync.Mutex
	// calls are the journalled calls, nil until the journal is read.
	calls []madeCall
	// asked counts the calls of this process by caller.
	asked map[askedAs]int
}

// NewTurns returns the counts of the tree of a root.
func NewTurns(store journal.Store, root string) *Turns { return &Turns{store: store, root: root} }

// madeCall is a call to a model with the names of the runs above it.
type madeCall struct {
	model string
	names []string
}

type askedAs struct{ model, name string }

// Caller returns the caller of a model, and a function that takes back the count
// of an interrupted call, because the call is made again.
func (t *Turns) Caller(names func() []string, model string) (c llm.Caller, interrupted func()) {
	var as *askedAs
	c = llm.Caller{Names: names, Turn: func(ctx context.Context, name string) (int, error) {
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
func (t *Turns) read(ctx context.Context) error {
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
func (t *Turns) readTree(ctx context.Context, root string, calls *[]madeCall) (from string, err error) {
	const page = 1000
	runs := map[string]*caller{}
	of := func(run string) *caller {
		if runs[run] == nil {
			runs[run] = &caller{}
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
				of(d.Child).as = StartedAs{d.Action(), d.Name, d.Step}
			case event.ModelResponse:
				*calls = append(*calls, madeCall{d.Model, of(r.Run).as.Names(of(r.Run).name)})
			case event.ModelAttemptFailed:
				if d.Class != llm.ClassInterrupted {
					*calls = append(*calls, madeCall{d.Model, of(r.Run).as.Names(of(r.Run).name)})
				}
			}
		}
		if len(records) < page {
			return from, nil
		}
	}
}

// caller holds the names of a run in the journal.
type caller struct {
	name string
	as   StartedAs
}

// StartedAs holds a parent's names for a child: an id, the name of the agent, and the
// step.
type StartedAs struct{ ID, Agent, Step string }

// Names returns the names of a run, most specific first: its step as it is shown, the
// step as its file names it, its role in a loop ("judge"), its parent's name for the
// agent, and its own name.
func (s StartedAs) Names(name string) []string {
	var names []string
	if _, part, within := strings.Cut(s.ID, "/"); within { // it judges a step and is not one
		part, _, _ = strings.Cut(part, "/")
		names = append(names, part)
	} else if s.Step != "" {
		names = append(names, s.Step, bareStep(s.Step))
	}
	return append(names, s.Agent, name)
}

// bareStep returns the id of a step without enclosing loops and its own pass.
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
