package holder

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// registered is how long a driver is known without renewing its registration.
const registered = 15 * time.Second

// Announce keeps a driver registered in a journal until ctx ends, and then removes it.
// Each renewal registers what d returns then. failed receives the errors of attempts; the
// next attempt follows all the same.
func Announce(ctx context.Context, store journal.KeepsDrivers, d func() journal.Driver, failed func(error)) {
	tick := time.NewTicker(registered / 3)
	defer tick.Stop()
	for {
		if err := store.Register(ctx, d(), registered); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := store.Register(leaving, d(), 0); err != nil {
			failed(err)
		}
		return
	}
}
