package holder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Placement decides which process may drive a run. Implementations are safe for
// concurrent use.
type Placement interface {
	// Take acquires the lease of a run for this process. The error wraps a
	// *[journal.HeldError] if another process drives the run.
	Take(ctx context.Context, run string) (journal.Lease, error)
	// Uncertain reports whether the expiry of a lease is implausible. Whether its
	// holder drives the run is then known within the duration of a lease, although the
	// lease expires later.
	Uncertain(held *journal.HeldError) bool
	// Drives reports whether the holder of a run's lease may still drive the run.
	Drives(r journal.Run) bool
}

// Local is the Placement for processes that share a journal and may run on the same
// machine. The process that acquires a run's lease drives the run.
type Local struct {
	store journal.Store
	owner string
	lasts time.Duration
	now   func() time.Time

	mu sync.Mutex
	// silences contains the leases with an implausible expiry, by run.
	silences map[string]silence
}

// NewLocal returns the Placement for a process that leases name owner. A lease is valid
// for lasts, according to the clock now.
func NewLocal(store journal.Store, owner string, lasts time.Duration, now func() time.Time) *Local {
	return &Local{store: store, owner: owner, lasts: lasts, now: now, silences: map[string]silence{}}
}

// Take also takes over the lease of a dead process of this machine, a lease that this
// process failed to release, and one that its holder no longer renews, so that the user
// need not wait for its expiry. The caller must not already drive the run.
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

// silence is a lease with an implausible expiry, and the time at which this process
// first saw it.
type silence struct {
	owner  string
	expiry time.Time
	since  time.Time
}

// Uncertain reports whether a lease expires later than a lease acquired now would. That
// means that the clock was set back since. A live holder corrects the expiry at its
// next heartbeat.
func (l *Local) Uncertain(held *journal.HeldError) bool {
	return held.Owner != l.owner && held.Expiry.Sub(l.now()) > l.lasts
}

// silent records when it first saw a lease with an implausible expiry, and reports
// whether the holder has not renewed it for the duration of a lease. So the process
// need not wait for as long as the clock was set back.
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
