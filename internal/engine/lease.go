package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// lease is a driver's right to write the journal of its run.
type lease struct {
	store journal.Store
	// lasts is how long a lease is valid, and now the machine's clock, which leases
	// use.
	lasts time.Duration
	now   func() time.Time
	// held is the lease as the store returned it, and asked when it was requested.
	held  journal.Lease
	asked time.Time
	// right is held without its expiry, so that renewals do not change it: the effects
	// that start children read it. parent is that of the parent's driver, which must
	// hold when the run is created.
	right, parent journal.Lease
	// unmade reports whether the run's first commit is still to come, and released
	// whether the lease was released. queued reports whether the first commit leaves
	// the run to another process.
	unmade, released, queued bool
}

// fresh returns a lease that begins now.
func (l *lease) fresh(run, owner string) journal.Lease {
	return journal.Lease{Run: run, Owner: owner, Expiry: l.now().Add(l.lasts)}
}

// take sets the lease that the store returned, and when it was requested.
func (l *lease) take(held journal.Lease, asked time.Time) {
	l.held, l.asked, l.unmade = held, asked, false
	l.right = journal.Lease{Run: held.Run, Owner: held.Owner, Epoch: held.Epoch}
}

// renew extends the lease. A run without a journal gets its lease by the commit
// that follows.
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

// over reports whether another process may have taken the lease: it has expired
// by the machine's clock, or by the monotonic clock, which counts if the
// machine's clock was set back (see [holder.Local]).
func (l *lease) over() bool {
	return !l.now().Before(l.held.Expiry) || time.Since(l.asked) >= l.lasts
}

// releasePatience is how long a driver waits for the release of its lease; the
// lease expires by itself.
const releasePatience = 5 * time.Second

// release releases the lease, unless it was lost. A store may hang in a write to
// a slow disk, whatever the context says. Then release abandons the write: if
// another process takes the run meanwhile, the write's epoch is stale.
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

// takePatiently is take with the contents stored beside the events. If it is uncertain
// whether the holder of the lease is alive, it waits until that is known.
func (e *Engine) takePatiently(ctx context.Context, run string) (*driver, event.RunStarted, error) {
	for {
		d, started, err := e.take(ctx, run, true)
		held, ok := errors.AsType[*journal.HeldError](err)
		if !ok || !e.opts.Placement.Uncertain(held) {
			return d, started, err
		}
		select {
		case <-time.After(leasePoll):
		case <-ctx.Done():
			return nil, event.RunStarted{}, err
		}
	}
}
