package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// renewing calls do while it renews a lease every third of its duration, and returns the
// lease as it is then. The context of do ends when the lease cannot be renewed.
func renewing(ctx context.Context, store journal.Store, lease journal.Lease, lasts time.Duration, do func(context.Context) error) (journal.Lease, error) {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	beats := time.NewTicker(lasts / 3)
	defer beats.Stop()
	for {
		select {
		case err := <-done:
			return lease, err
		case <-beats.C:
			renewed, err := store.Renew(ctx, lease, lasts)
			if err != nil {
				lose(fmt.Errorf("renew the lease: %w", err))
				return lease, <-done
			}
			lease = renewed
		}
	}
}
