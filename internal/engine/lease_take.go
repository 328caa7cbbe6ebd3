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
