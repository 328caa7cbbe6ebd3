package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// beat keeps the lease and, should a wake-up have been lost, the inbox.
func (d *driver) beat(ctx context.Context) error {
	err := d.renew(ctx)
	if errors.Is(err, journal.ErrStale) || errors.Is(err, journal.ErrNotFound) || err != nil && d.leaseOver() {
		return d.storeFailed(err)
	}
	d.childrenMayKnow()
	return d.takeCommands(ctx)
}

func (d *driver) renew(ctx context.Context) error {
	if d.unborn {
		return nil // the commit that follows makes the run
	}
	asked := time.Now()
	lease, err := d.store.Renew(ctx, d.lease, d.engine.opts.LeaseTTL)
	if err == nil {
		d.lease, d.leased = lease, asked
	}
	return err
}

// leaseOver reports whether somebody else may have taken the lease: its end has
// come by the clock of the machine, or so much time has passed since it was
// given that it would have, had nobody set that clock back (see
// [Engine.silent]).
func (d *driver) leaseOver() bool {
	return !d.engine.opts.Now().Before(d.lease.Expiry) || time.Since(d.leased) >= d.engine.opts.LeaseTTL
}

// keepLease comes between a commit and the effects that wait for it. A disk
// may have held the commit up for longer than the lease lasted; whoever has
// taken the run over since then has decided what becomes of the intents, so
// nothing starts unless the lease is still ours.
func (d *driver) keepLease(ctx context.Context) error {
	if len(d.queue) == 0 || !d.leaseOver() {
		return nil
	}
	if err := d.renew(ctx); err != nil {
		return d.storeFailed(err)
	}
	return nil
}

// releasePatience is how long a driver that leaves waits for its lease to be
// given back; it expires by itself.
const releasePatience = 5 * time.Second

// releaseLease lets others take the run up; a lease that was lost is not ours
// to give. A store does not come back from a write that its disk holds up,
// whatever the context says, so the write is left behind then: its epoch is old
// for everybody who takes the run meanwhile.
func (d *driver) releaseLease(ctx context.Context) {
	if d.released || d.unborn {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	released := make(chan error, 1)
	go func() { released <- d.store.Release(ctx, d.lease) }()
	select {
	case err := <-released:
		d.released = err == nil
	case <-ctx.Done():
	}
}
