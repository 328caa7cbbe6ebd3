package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/holder"
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

// acquire takes a lease, also that of a process of this machine that is dead,
// one that this engine could not give back (the run is claimed, so no driver of
// ours has it), and one whose holder is silent: its user need not wait for the
// lease to expire.
func (e *Engine) acquire(ctx context.Context, run string) (journal.Lease, error) {
	lease, err := e.store.Acquire(ctx, run, e.opts.Owner, "", e.opts.LeaseTTL)
	held, ok := errors.AsType[*journal.HeldError](err)
	if ok && (held.Owner == e.opts.Owner || holder.Gone(held.Owner) || e.watchSilence(held)) {
		lease, err = e.store.Acquire(ctx, run, e.opts.Owner, held.Owner, e.opts.LeaseTTL)
	}
	if err != nil {
		return journal.Lease{}, fmt.Errorf("engine: take run %s: %w", run, err)
	}
	return lease, nil
}

// silence is a lease that ends too late, and since when this engine sees it so.
type silence struct {
	owner  string
	expiry time.Time
	since  time.Time
}

// endsTooLate reports whether nobody can have been given a lease by the clock as it
// stands: it has been set back since then. Whoever lives to hold the lease gives
// it another end at the next heartbeat.
func (e *Engine) endsTooLate(held *journal.HeldError) bool {
	return held.Owner != e.opts.Owner && held.Expiry.Sub(e.opts.Now()) > e.opts.LeaseTTL
}

// watchSilence notes since when a lease ends too late, and says whether it has not been
// renewed for as long as one lasts: nobody waits as long as the clock was set back.
func (e *Engine) watchSilence(held *journal.HeldError) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.endsTooLate(held) {
		delete(e.silences, held.Run)
		return false
	}
	s := e.silences[held.Run]
	if s.owner != held.Owner || !s.expiry.Equal(held.Expiry) {
		e.silences[held.Run] = silence{owner: held.Owner, expiry: held.Expiry, since: time.Now()}
		return false
	}
	if time.Since(s.since) < e.opts.LeaseTTL {
		return false
	}
	delete(e.silences, held.Run)
	return true
}

// takePatiently is take with the contents beside the events, which waits where a
// lease ends too late until it is known whether somebody holds it.
func (e *Engine) takePatiently(ctx context.Context, run string) (*driver, event.RunStarted, error) {
	for {
		d, started, err := e.take(ctx, run, true)
		held, ok := errors.AsType[*journal.HeldError](err)
		if !ok || !e.endsTooLate(held) {
			return d, started, err
		}
		select {
		case <-time.After(leaseLook):
		case <-ctx.Done():
			return nil, event.RunStarted{}, err
		}
	}
}
