// Package drive contains what all drivers of runs share, whatever executes their
// effects: the interface of a run ([Run]), the requests to models ([Requests],
// [Continuity]), the stored form of results ([Recorder]), and reading what runs did
// from their journals ([Past]).
package drive

import (
	"context"
	"iter"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Run is a run that a driver drives, as surfaces use it. It is safe for concurrent
// use.
type Run interface {
	// RunID returns the run's id.
	RunID() string
	// Events yields the run's events from the first on, with live deltas if deltas
	// is true, until the run is no longer driven. The error is the driver's.
	Events(ctx context.Context, deltas bool) iter.Seq2[event.Event, error]
	// Tree is Events with those of all descendants, in the order of pos. The last event
	// is the run's own.
	Tree(ctx context.Context, deltas bool) iter.Seq2[event.Event, error]
	// Send delivers a command to the run.
	Send(ctx context.Context, c journal.Command) error
	// Wait blocks until the run has ended or parked, or ctx ends; the latter does not
	// affect the run.
	Wait(ctx context.Context) (machine.State, error)
	// Interrupt parks the run without waiting.
	Interrupt()
	// Park parks the run when its calls under way have ended, without waiting.
	Park()
	// Streams reports whether an answer of a model arrives, in the run or in one below it.
	Streams() bool
	// Wakes returns the end of the time that the run waits for, and zero if the run waits
	// for none or is busy.
	Wakes() time.Time
	// Machine returns the run's machine. It may be read once Wait has returned.
	Machine() machine.Machine
}
