package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// beat keeps the lease and, should a wake-up have been lost, the inbox.
func (d *driver) beat(ctx context.Context) error {
	lease, err := d.store.Renew(ctx, d.lease, d.engine.opts.LeaseTTL)
	switch {
	case err == nil:
		d.lease = lease
	case errors.Is(err, journal.ErrStale), errors.Is(err, journal.ErrNotFound), !d.now().Before(d.lease.Expiry):
		return d.storeFailed(err)
	}
	return d.takeCommands(ctx)
}

// keepLease comes between a commit and the effects that wait for it. A disk
// may have held the commit up for longer than the lease lasted; whoever has
// taken the run over since then has decided what becomes of the intents, so
// nothing starts unless the lease is still ours.
func (d *driver) keepLease(ctx context.Context) error {
	if len(d.queue) == 0 || d.now().Before(d.lease.Expiry) {
		return nil
	}
	lease, err := d.store.Renew(ctx, d.lease, d.engine.opts.LeaseTTL)
	if err != nil {
		return d.storeFailed(err)
	}
	d.lease = lease
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
	if d.released {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	go func() {
		defer cancel()
		_ = d.store.Release(ctx, d.lease)
	}()
	<-ctx.Done()
}
