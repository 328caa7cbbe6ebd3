package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/journal"
)

// Driven reports whether a process holds the run's lease.
func Driven(r journal.Run, now time.Time) bool { return r.Owner != "" && r.Expiry.After(now) }

// Alive reports whether a process drives the run: it holds the lease and is not
// known to have ended.
func Alive(r journal.Run, now time.Time) bool { return Driven(r, now) && !holder.Gone(r.Owner) }

// Driver returns the readable part of a lease's owner: process and host.
func Driver(owner string) string {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 {
		return owner
	}
	host, _, _ := strings.Cut(parts[0], ":")
	return "process " + parts[1] + " on " + host
}

// ErrCannotTell is returned in a process that cannot see the drivers of runs, so that a
// run's tool may have started it.
var ErrCannotTell = errors.New("this command is in a PID namespace of its own, where it cannot be told from a tool")

// StartedByRun returns the run whose driver started this process, directly or
// through others, or "" if no run did. Such a process may not decide about
// calls, of its own run or of another. The error is [ErrCannotTell] if this
// process cannot see who started it.
func (d *Controller) StartedByRun(ctx context.Context) (string, error) {
	drivers, err := d.Drivers(ctx)
	if err != nil {
		return "", err
	}
	for name, run := range drivers {
		if holder.StartedBy(name) {
			return run, nil
		}
		if holder.CannotTell(name) {
			return "", fmt.Errorf("%w of run %s", ErrCannotTell, run)
		}
	}
	return "", nil
}

// Drivers returns the owners of the leases of running runs, each with one of
// its runs.
func (d *Controller) Drivers(ctx context.Context) (map[string]string, error) {
	rows, err := d.store.Runs(ctx, journal.Filter{States: []journal.State{journal.Running, journal.Waiting}})
	if err != nil {
		return nil, fmt.Errorf("control: runs that are going: %w", err)
	}
	drivers := map[string]string{}
	for _, r := range rows {
		if r.Owner != "" {
			drivers[r.Owner] = r.ID
		}
	}
	return drivers, nil
}
