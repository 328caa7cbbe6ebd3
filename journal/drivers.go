package journal

import (
	"context"
	"time"
)

// Driver is a process that drives runs, as it registers itself for the other processes
// of the journal.
type Driver struct {
	// Owner names the process in the leases that it holds.
	Owner string `json:"owner"`
	// Host is the name of its machine, and Labels what the machine has.
	Host   string   `json:"host,omitempty"`
	Labels []string `json:"labels,omitempty"`
	// Full reports that it takes no more runs: it drives as many as it may, or its
	// machine lacks memory or disk.
	Full bool `json:"full,omitempty"`
	// Addr is the URL at which other processes read what its runs do at the moment,
	// and Key what they prove themselves with. They have neither if it serves no one.
	Addr string `json:"addr,omitempty"`
	Key  []byte `json:"key,omitempty"`
}

// KeepsDrivers is implemented by stores that know the processes that drive their runs.
type KeepsDrivers interface {
	// Register adds a driver, in place of an earlier registration of its owner, for ttl
	// by the store's clock. A ttl of 0 removes the registration.
	Register(ctx context.Context, d Driver, ttl time.Duration) error
	// Drivers returns the drivers whose registrations have not expired, by their owners.
	Drivers(ctx context.Context) ([]Driver, error)
}
