package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
)

// Driven says that a process holds the run's lease.
func Driven(r journal.Run, now time.Time) bool { return r.Owner != "" && r.Expiry.After(now) }

// Alive says that a process drives the run: one holds its lease, and is not known
// to be gone.
func Alive(r journal.Run, now time.Time) bool { return Driven(r, now) && !engine.OwnerGone(r.Owner) }

// Driver is the readable part of a lease's owner: process and host.
func Driver(owner string) string {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 {
		return owner
	}
	host, _, _ := strings.Cut(parts[0], ":")
	return "process " + parts[1] + " on " + host
}

// ErrCannotTell: this process is where it sees no driver, though a run's tool
// may have put it there.
var ErrCannotTell = errors.New("this command is in a PID namespace of its own, where it cannot be told from a tool")

// StartedByRun names the run whose driver has started this process, directly or
// through others, or "" when no run has. Such a process decides about nothing:
// neither its own run's calls nor another's. It is an [ErrCannotTell] where this
// process does not see whether one has.
func (d *Desk) StartedByRun(ctx context.Context) (string, error) {
	drivers, err := d.Drivers(ctx)
	if err != nil {
		return "", err
	}
	for owner, run := range drivers {
		if engine.StartedBy(owner) {
			return run, nil
		}
		if engine.CannotTell(owner) {
			return "", fmt.Errorf("%w of run %s", ErrCannotTell, run)
		}
	}
	return "", nil
}

// Drivers are the owners of the leases of runs that are going, each with one of
// its runs.
func (d *Desk) Drivers(ctx context.Context) (map[string]string, error) {
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
