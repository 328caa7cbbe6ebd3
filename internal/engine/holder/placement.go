package holder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Placement decides which process may drive a run. An implementation is safe for
// concurrent use.
type Placement interface {
	// Take takes the lease of a run for this process. The error wraps a
	// *[journal.HeldError] if another process drives the run.
	Take(ctx context.Context, run string) (journal.Lease, error)
	// Uncertain reports whether it will be known within the length of a lease whether
	// the holder of a lease drives its run, although the lease ends later.
	Uncertain(held *journal.HeldError) bool
	// Drives reports whether the holder of a run's lease may still drive the run.
	Drives(r journal.Run) bool
}

// Local is the Placement for processes that have the journal in common and may run on
// one machine: a run is driven by the process that takes its lease.
type Local struct {
	store journal.Store
	owner string
	lasts time.Duration
	now   func() time.Time

	mu sync.Mutex
	// silences are the leases that end too late, by their runs.
	silences map[string]silence
}

// NewLocal returns the Placement of a process whose name in leases is owner. A lease
// is valid for lasts, by the clock now.
func NewLocal(store journal.Store, owner string, lasts time.Duration, now func() time.Time) *Local {
	return &Local{store: store, owner: owner, lasts: lasts, now: now, silences: map[string]silence{}}
}

// Take also takes the lease of a dead process of this machine, one that this process
// could not release, and one whose holder has stopped renewing it: the user need not
// wait for the lease to expire. The caller must not drive the run already.
func (l *Local) Take(ctx context.Context, run string) (journal.Lease, error) {
	lease, err := l.store.Acquire(ctx, run, l.owner, "", l.lasts)
	held, ok := errors.AsType[*journal.HeldError](err)
	if ok && (held.Owner == l.owner || Gone(held.Owner) || l.silent(held)) {
		return l.store.Acquire(ctx, run, l.owner, held.Owner, l.lasts)
	}
	return lease, err
}

// Drives reports whether a run's lease is valid and its holder is not known to have
// ended.
func (l *Local) Drives(r journal.Run) bool {
	return r.Owner != "" && r.Expiry.After(l.now()) && !Gone(r.Owner)
}

// silence is a lease whose expiry is implausibly far ahead, and when this process
// first saw it.
type silence struct {
	owner  string
	expiry time.Time
	since  time.Time
}

// Uncertain reports whether a lease expires later than any lease given now could. The
// clock has then been set back since it was given. A live holder corrects the expiry
// with its next heartbeat.
func (l *Local) Uncertain(held *journal.HeldError) bool {
	return held.Owner != l.owner && held.Expiry.Sub(l.now()) > l.lasts
}

// silent notes when a lease with an implausible expiry was first seen, and reports
// whether its holder has not renewed it for the length of a lease. So a process need
// not wait for as long as the clock was set back.
func (l *Local) silent(held *journal.HeldError) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.Uncertain(held) {
		delete(l.silences, held.Run)
		return false
	}
	s := l.silences[held.Run]
	if s.owner != held.Owner || !s.expiry.Equal(held.Expiry) {
		l.silences[held.Run] = silence{owner: held.Owner, expiry: held.Expiry, since: time.Now()}
		return false
	}
	if time.Since(s.since) < l.lasts {
		return false
	}
	delete(l.silences, held.Run)
	return true
}
