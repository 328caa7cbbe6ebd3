package pawl

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// ErrNotPending is returned for a decision on a call that does not wait for
// one.
var ErrNotPending = engine.ErrNotPending

// DecidedError is returned for a decision that comes after another one, or too
// late. It is an [ErrNotPending].
type DecidedError = engine.DecidedError

// Run is a run that this process drives. It is safe for concurrent use.
type Run struct {
	run   drive.Run
	store journal.Store
}

// ID returns the run's id.
func (r *Run) ID() string { return r.run.RunID() }

// Journal returns the store of the run.
func (r *Run) Journal() journal.Store { return r.store }

// Events yields the run's events from the first on, each after it is stored, and ends
// when the run has ended or parked. Any number of callers may range over it at once and
// at any time. Breaking out leaves the run running. The error is a failure of the
// engine; if the run fails, its last event contains the reason. An event must not be
// changed.
func (r *Run) Events() iter.Seq2[Event, error] { return r.run.Events(context.Background(), false) }

// Stream is [Run.Events] with the live deltas included: [event.Text],
// [event.Reasoning] and [event.ToolCallDelta] as the model streams them,
// [event.TextReset] when text must be discarded, [event.ToolProgress] and
// [event.ToolOutput].
func (r *Run) Stream() iter.Seq2[Event, error] { return r.run.Events(context.Background(), true) }

// Wait blocks until the run has ended or parked and returns its state, whether
// or not the events were ranged over. The error is a failure of the engine.
func (r *Run) Wait() (State, error) {
	s, err := r.run.Wait(context.Background())
	m, _ := r.run.Machine().(machine.Conversing)
	out := stateOf(r.run.RunID(), m, s)
	if err == nil && out.Status == StatusParked {
		err = out.addBelow(context.Background(), r.store)
	}
	return out, err
}

// State returns the run's current state, from its journal.
func (r *Run) State(ctx context.Context) (State, error) { return Inspect(ctx, r.store, r.run.RunID()) }

// Interrupt parks the run: calls in progress are stopped and settled first. It
// does not wait; [Agent.Resume] continues the run.
func (r *Run) Interrupt() { r.run.Interrupt() }

// Cancel ends the run, also a parked one: calls in progress are stopped, every
// open call is settled, and the outcome's status is cancelled.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Cancel, Text: reason})
}

// Pause parks the run at the end of its cycle, or at once if it only waits to
// retry a call.
func (r *Run) Pause(ctx context.Context) error {
	return r.send(ctx, journal.Command{Kind: journal.Pause})
}

// Input adds a message, which the model reads in the next cycle. Images and
// files may be added to it or sent alone.
func (r *Run) Input(ctx context.Context, message string, files ...llm.Media) error {
	return r.send(ctx, journal.Command{Kind: journal.Input, Text: message, Media: files})
}

// Approve permits a pending call to run, once. On a parked run the decision is recorded
// and takes effect when the run is resumed. The error is a *[DecidedError] for a call
// that is already decided or has expired, and [ErrNotPending] for a call that does not
// wait for a decision.
func (r *Run) Approve(ctx context.Context, callID, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Approve, CallID: callID, Text: reason})
}

// ApproveEdited permits a pending call to run with other arguments, which are
// validated and judged like the model's own; see [Decision].
func (r *Run) ApproveEdited(ctx context.Context, callID string, args json.RawMessage, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Approve, CallID: callID, Args: args, Text: reason})
}

// Reject declines a pending call; the model receives the reason.
func (r *Run) Reject(ctx context.Context, callID, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Reject, CallID: callID, Text: reason})
}

// Raise replaces one limit of the run by its setting's name ("max_cycles",
// "usd_per_run"). The error is a [*budget.UnpricedError] for a cost limit if a
// model that the run or an agent of it may call has no price.
func (r *Run) Raise(ctx context.Context, setting string, value float64) error {
	return r.send(ctx, journal.Command{Kind: journal.Raise, Setting: setting, Value: value})
}

func (r *Run) send(ctx context.Context, c journal.Command) error {
	c.By = "the program"
	return r.run.Send(ctx, c)
}
