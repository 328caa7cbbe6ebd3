package journal

import (
	"context"
	"errors"
	"time"
)

// ErrTenantFull is returned by Acquire for a run whose tenant runs as many as it may.
var ErrTenantFull = errors.New("journal: the tenant runs as many as it may at once")

// KeepsTenants is implemented by stores that know the tenants of runs, and limit how many
// runs of a tenant are driven at once: Acquire counts them in its transaction.
type KeepsTenants interface {
	// Assign sets the tenant of a root run, and how many runs of the tenant may be driven
	// at once, 0 for any number.
	Assign(ctx context.Context, run, tenant string, maxRunning int) error
	// Load counts the root runs that are queued or go on.
	Load(ctx context.Context) ([]Load, error)
}

// Load is how many root runs of a tenant have a state.
type Load struct {
	// Tenant is empty for runs that were assigned to none.
	Tenant string
	State  State
	Runs   int
	// Oldest is when the oldest of them was created.
	Oldest time.Time
}
