package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Begin returns the machine of a run with a first event.
func (p Past) Begin(first *event.Event) (machine.Machine, event.RunStarted, error) {
	started, ok := first.Data.(event.RunStarted)
	if !ok {
		return nil, started, fmt.Errorf("its journal begins with %s", first.Type())
	}
	m, err := p.Machines(started.Machine)
	return m, started, err
}

// Fold folds a run's journal into a machine.
func (p Past) Fold(ctx context.Context, run string) (machine.Machine, error) {
	f := folded{}
	if err := f.read(ctx, p, run); err != nil {
		return nil, err
	}
	return f.machine, nil
}

// folded is a machine, and the number and the hash of the last event that it applied.
type folded struct {
	machine machine.Machine
	seq     int64
	hash    string
	// cut reports whether an event was applied without its text.
	cut bool
	// note is called with each event that was applied, nil for nothing.
	note func(*event.Event)
}

// read applies the events of the journal after the last one.
func (f *folded) read(ctx context.Context, p Past, run string) error {
	for read, err := range (&reading{store: p.Store, run: run, seq: f.seq, hash: f.hash}).events(ctx) {
		if err != nil {
			return err
		}
		if f.machine == nil {
			if f.machine, _, err = p.Begin(read.Event); err != nil {
				return &UnreadableError{err}
			}
		}
		if err := f.machine.Apply(read.Event); err != nil {
			return &UnreadableError{err}
		}
		if f.note != nil {
			f.note(read.Event)
		}
		f.seq, f.hash, f.cut = read.Record.Seq, read.Hash, f.cut || event.LeftOut(read.Event.Data)
	}
	if f.machine == nil {
		return journal.ErrNotFound
	}
	return nil
}

// keptSnapshots is the number of cached folds. A fold of a run that has not ended keeps
// its conversation in memory.
const keptSnapshots = 16

// Snapshots caches the states of recently read runs, so that reading one again costs
// only its new events. It is safe for concurrent use.
type Snapshots struct {
	past Past
	runs Recent[snapshot]
}

// Snapshots returns Snapshots that hold no run yet.
func (p Past) Snapshots() Snapshots {
	return Snapshots{past: p, runs: Recent[snapshot]{Most: keptSnapshots}}
}

// snapshot is the cached state of a run. An ended run has no machine.
type snapshot struct {
	mu sync.Mutex
	folded
	state RunState
}

// RunState is what surfaces show of a run's state. Its JSON gives the same state.
type RunState struct {
	Parked *event.RunParked
	Usage  llm.Usage
	Cost   llm.Cost
	Taint  event.Taint
	// Limits is the use of each limit; Active and Idle are those of [budget.Spent].
	Limits       []budget.Use
	Active, Idle time.Duration
}

// StateOf returns what surfaces show of the state of a machine.
func StateOf(m machine.Machine) RunState {
	of := m.State()
	s := RunState{Parked: of.Parked, Usage: of.Usage, Cost: of.Cost, Taint: of.Taint}
	if m, ok := m.(machine.Spending); ok {
		spent := m.Spent()
		s.Active, s.Idle = spent.Active, spent.Idle
		if m, ok := m.(machine.Bounded); ok {
			s.Limits = m.Bounds().Uses(spent)
		}
	}
	return s
}

// State returns the current state of a run from its journal.
func (s *Snapshots) State(ctx context.Context, run string) (RunState, error) {
	n := s.runs.Of(run)
	n.mu.Lock()
	defer n.mu.Unlock()
	row, err := s.past.Store.Run(ctx, run)
	if err != nil {
		return RunState{}, err
	}
	if row.Seq == n.seq && row.Head == n.hash {
		return n.state, nil
	}
	if n.machine == nil || row.Seq <= n.seq {
		n.folded = folded{}
	}
	known := n.seq > 0
	if !known && n.restore(ctx, s.past.Store, row) {
		return n.state, nil
	}
	err = n.read(ctx, s.past, run)
	if _, broken := errors.AsType[*UnreadableError](err); broken && known { // a new run with the same id
		n.folded = folded{}
		err = n.read(ctx, s.past, run)
	}
	if err != nil {
		n.folded = folded{}
		return RunState{}, err
	}
	n.state = StateOf(n.machine)
	state := n.state
	switch {
	case n.cut:
		n.folded = folded{}
	case n.machine.State().Phase == machine.Ended:
		n.machine = nil
	}
	return state, nil
}

// Recent caches a value for each of the most recently used keys. It is safe for
// concurrent use; its values synchronize themselves.
type Recent[T any] struct {
	// Most bounds the number of values.
	Most int

	mu   sync.Mutex
	last []kept[T]
}

type kept[T any] struct {
	key   string
	value *T
}

// Of returns the value of a key, a new one if there is none.
func (r *Recent[T]) Of(key string) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := kept[T]{key, new(T)}
	if i := slices.IndexFunc(r.last, func(k kept[T]) bool { return k.key == key }); i >= 0 {
		of = r.last[i]
		r.last = slices.Delete(r.last, i, i+1)
	}
	r.last = append(r.last, of)
	if over := len(r.last) - r.Most; over > 0 {
		r.last = slices.Delete(r.last, 0, over)
	}
	return of.value
}
