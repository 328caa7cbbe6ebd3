// Package drive is what every driver of runs has in common, whatever its effects
// run on: how a run looks to those who use it ([Run]), the requests that models are
// sent ([Requests], [Continuity]), the form in which a journal keeps what came back
// ([Recorder]), and what runs did by their journals ([Past]).
package drive

import (
	"context"
	"iter"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Run is a run that a driver drives, as surfaces use it. It is safe for concurrent
// use.
type Run interface {
	// RunID names the run in its journal.
	RunID() string
	// Events yields the run's events from the first on, with live deltas if deltas
	// is true, until the run is no longer driven. The error is the driver's.
	Events(ctx context.Context, deltas bool) iter.Seq2[event.Event, error]
	// Tree is Events with those of all runs below it, in the order of pos. The last
	// one is the run's own.
	Tree(ctx context.Context, deltas bool) iter.Seq2[event.Event, error]
	// Send delivers a command to the run.
	Send(ctx context.Context, c journal.Command) error
	// Wait blocks until the run has ended or parked, or ctx ends; the latter leaves
	// the run going.
	Wait(ctx context.Context) (machine.State, error)
	// Interrupt parks the run and does not wait for that.
	Interrupt()
	// Machine is the run's machine. It may be read once Wait has returned.
	Machine() machine.Machine
}
