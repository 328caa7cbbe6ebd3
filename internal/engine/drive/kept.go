package drive

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// leastKept is the number of events from which a run has snapshots; fewer are folded in a
// few milliseconds.
const leastKept = 1000

// The names of a run's snapshots.
const (
	keptView  = "view"
	keptState = "state"
)

// stateVersion is the version of a snapshot of a [RunState].
const stateVersion = "1"

// keptOf returns the newest snapshot of a run, nil for none that fits the run's events.
func keptOf(ctx context.Context, store journal.Store, run, name, version string) *journal.Snapshot {
	keeps, may := store.(journal.KeepsSnapshots)
	if !may {
		return nil
	}
	s, err := keeps.Kept(ctx, run, name)
	if err != nil || s.Version != version || s.Seq < leastKept {
		return nil
	}
	return &s
}

// place is the position of a run's reader.
type place struct {
	// Seq is the number and Pos the place of the last applied event; Ended reports that
	// it is the last of the run.
	Seq, Pos int64
	Ended    bool
	head     string
}

// read applies the new events of the journal. The first time it begins with the run's
// snapshot, if that has the run's events and restore reads it.
func (p *place) read(ctx context.Context, store journal.Store, run string, restore func([]byte) bool, add func(*event.Event)) error {
	if p.Seq == 0 {
		p.begin(ctx, store, run, restore)
	}
	const page = 500
	for n := page; n == page; {
		records, err := store.Records(ctx, run, p.Seq, page)
		if err != nil {
			return err
		}
		for _, r := range records {
			e, err := decode(run, r)
			if err != nil {
				return err
			}
			add(e)
			p.at(r)
		}
		if n = len(records); n > 0 {
			p.head = event.Hash(records[n-1].Body)
		}
	}
	return nil
}

func (p *place) at(r journal.Record) {
	p.Seq, p.Pos, p.Ended = r.Seq, r.Pos, event.Type(r.Type) == event.TypeRunCompleted
}

func (p *place) begin(ctx context.Context, store journal.Store, run string, restore func([]byte) bool) {
	s := keptOf(ctx, store, run, keptView, view.SnapshotVersion)
	if s == nil {
		return
	}
	last, err := store.Records(ctx, run, s.Seq-1, 1)
	if err == nil && len(last) == 1 && last[0].Seq == s.Seq && event.Hash(last[0].Body) == s.Head && restore(s.Body) {
		p.head = s.Head
		p.at(last[0])
	}
}

// Viewed is the view of a run up to an event.
type Viewed struct {
	view.View
	place
}

// Read applies the new events of the journal.
func (v *Viewed) Read(ctx context.Context, store journal.Store, run string) error {
	return v.read(ctx, store, run, func(body []byte) bool {
		restored := view.Restore(body)
		if restored != nil {
			v.View = *restored
		}
		return restored != nil
	}, func(e *event.Event) { v.Add(e) })
}

// Digested is the digest of a run up to an event.
type Digested struct {
	view.Digest
	place
}

// Read applies the new events of the journal.
func (d *Digested) Read(ctx context.Context, store journal.Store, run string) error {
	return d.read(ctx, store, run, func(body []byte) bool {
		restored := view.RestoreDigest(body)
		started, _, err := Began(ctx, store, run)
		if restored == nil || err != nil {
			return false
		}
		d.Digest, d.Started = *restored, started
		return true
	}, func(e *event.Event) { d.Add(e) })
}

// Keeper keeps snapshots of the runs that an engine drives, in the background. It is safe
// for concurrent use.
type Keeper struct {
	store   journal.KeepsSnapshots
	journal journal.Store
	working sync.WaitGroup
	mu      sync.Mutex
}

// NewKeeper returns a Keeper, nil if the store keeps no snapshots.
func NewKeeper(store journal.Store) *Keeper {
	if keeps, may := store.(journal.KeepsSnapshots); may {
		return &Keeper{store: keeps, journal: store}
	}
	return nil
}

// Growth is how far a run has come since its newest snapshot.
type Growth struct {
	*Keeper
	last int64
}

// To starts a snapshot of a run whose last event has a number, if many came after the
// newest. While a snapshot of another
// run is made, it starts none.
func (g *Growth) To(run string, seq int64) {
	k := g.Keeper
	if k == nil || seq-g.last < max(leastKept, seq/8) || !k.mu.TryLock() {
		return
	}
	g.last = seq
	k.working.Go(func() {
		defer k.mu.Unlock()
		k.view(run)
	})
}

// Left starts the snapshots of a run that is not driven any more, whose last event has
// the number and the hash.
func (k *Keeper) Left(run string, seq int64, head string, m machine.Machine) {
	if k == nil || seq < leastKept {
		return
	}
	state := StateOf(m)
	k.working.Go(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if body, err := json.Marshal(state); err == nil {
			k.keep(run, keptState, journal.Snapshot{Version: stateVersion, Seq: seq, Head: head, Body: body})
		}
		k.view(run)
	})
}

// Wait waits for the snapshots that were started.
func (k *Keeper) Wait() {
	if k != nil {
		k.working.Wait()
	}
}

func (k *Keeper) view(run string) {
	v := Digested{}
	if v.Read(context.Background(), k.journal, run) == nil {
		k.keep(run, keptView, journal.Snapshot{Version: view.SnapshotVersion, Seq: v.Seq, Head: v.head, Body: v.Snapshot()})
	}
}

// keep stores a snapshot. It ignores errors: without a snapshot the next reader folds
// the run.
func (k *Keeper) keep(run, name string, s journal.Snapshot) {
	_ = k.store.Keep(context.Background(), run, name, s)
}

// restore sets the state of a run from its snapshot, and reports whether there is one of
// the run's last event.
func (n *snapshot) restore(ctx context.Context, store journal.Store, row journal.Run) bool {
	s := keptOf(ctx, store, row.ID, keptState, stateVersion)
	if s == nil || s.Seq != row.Seq || s.Head != row.Head {
		return false
	}
	state := RunState{}
	if json.Unmarshal(s.Body, &state) != nil {
		return false
	}
	n.folded, n.state = folded{seq: row.Seq, hash: row.Head}, state
	return true
}
