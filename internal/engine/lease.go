package engine

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// lease is the right of a driver to write the journal of its run.
type lease struct {
	store journal.Store
	// lasts is how long a lease does, and now the clock of the machine, by which leases go.
	lasts time.Duration
	now   func() time.Time
	// held is the lease as the store gave it, and asked when it was asked for that.
	held  journal.Lease
	asked time.Time
	// unmade says that the run is made by its first commit, and released that the lease
	// was given back.
	unmade, released bool
}

// fresh is a lease that begins now.
func (l *lease) fresh(run, owner string) journal.Lease {
	return journal.Lease{Run: run, Owner: owner, Expiry: l.now().Add(l.lasts)}
}

// take notes the lease that the store gave when it was asked.
func (l *lease) take(held journal.Lease, asked time.Time) {
	l.held, l.asked, l.unmade = held, asked, false
}

// renew makes the lease last longer. The commit that follows gives a run that is not
// made yet its lease.
func (l *lease) renew(ctx context.Context) error {
	if l.unmade {
		return nil
	}
	asked := time.Now()
	held, err := l.store.Renew(ctx, l.held, l.lasts)
	if err == nil {
		l.held, l.asked = held, asked
	}
	return err
}

// over reports whether somebody else may have taken the lease: its end has
// come by the clock of the machine, or so much time has passed since it was
// given that it would have, had nobody set that clock back (see
// [Engine.watchSilence]).
func (l *lease) over() bool {
	return !l.now().Before(l.held.Expiry) || time.Since(l.asked) >= l.lasts
}

// releasePatience is how long a driver that leaves waits for its lease to be
// given back; it expires by itself.
const releasePatience = 5 * time.Second

// release lets others take the run up; a lease that was lost is not ours
// to give. A store does not come back from a write that its disk holds up,
// whatever the context says, so the write is left behind then: its epoch is old
// for everybody who takes the run meanwhile.
func (l *lease) release(ctx context.Context) {
	if l.released || l.unmade {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	released := make(chan error, 1)
	go func() { released <- l.store.Release(ctx, l.held) }()
	select {
	case err := <-released:
		l.released = err == nil
	case <-ctx.Done():
	}
}
