package pawl

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
)

// ErrNotPending is returned for a decision on a call that waits for none.
var ErrNotPending = engine.ErrNotPending

// DecidedError is returned for a decision that comes after another one, or too
// late. It is an [ErrNotPending].
type DecidedError = engine.DecidedError

// Run is a run that this process drives. It is safe for concurrent use.
type Run struct {
	run   *engine.Run
	store journal.Store
}

// ID names the run in its journal.
func (r *Run) ID() string { return r.run.ID }

// Journal is the store that keeps the run, also one in memory.
func (r *Run) Journal() journal.Store { return r.store }

// Events yields the run's events from the first on, each once it is stored, and
// ends when the run has ended or parked. Any number of callers may range at
// once and at any time. Breaking out detaches and leaves the run going. The
// error is a failure of the engine; a run that failed says so in its last
// event. An event must not be changed.
func (r *Run) Events() iter.Seq2[Event, error] { return r.run.Events(context.Background(), false) }

// Stream is [Run.Events] with the live deltas among them: [event.Text],
// [event.Reasoning] and [event.ToolCallDelta] as the model speaks, and
// [event.TextReset] when what an attempt had said is void.
func (r *Run) Stream() iter.Seq2[Event, error] { return r.run.Events(context.Background(), true) }

// Wait blocks until the run has ended or parked and returns its state, the same
// whether or not anybody ranged over the events. The error is a failure of the
// engine.
func (r *Run) Wait() (State, error) {
	s, err := r.run.Wait(context.Background())
	m, _ := r.run.Machine().(*agent.Machine)
	return stateOf(r.run.ID, m, s), err
}

// State returns the run's state as its journal has it now.
func (r *Run) State(ctx context.Context) (State, error) { return Inspect(ctx, r.store, r.run.ID) }

// Interrupt parks the run: what is in flight is stopped and settled first. It
// does not wait; [Agent.Resume] goes on.
func (r *Run) Interrupt() { r.run.Interrupt() }

// Cancel ends the run for good, also one that has parked: what is in flight is
// stopped, every open call is settled, and the outcome's status is cancelled.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Cancel, Text: reason})
}

// Pause parks the run at the end of its cycle, or at once where all that it does is
// to wait before it makes a call again.
func (r *Run) Pause(ctx context.Context) error {
	return r.send(ctx, journal.Command{Kind: journal.Pause})
}

// Input adds a message, which the model reads at the next cycle. Images and
// files may go with it, or stand alone.
func (r *Run) Input(ctx context.Context, message string, files ...llm.Media) error {
	return r.send(ctx, journal.Command{Kind: journal.Input, Text: message, Media: files})
}

// Approve lets a pending call run, once. On a parked run the decision is
// recorded and acted on when the run is resumed. A call that has been decided
// already, or whose time is over, gives a *[DecidedError]; one that waits for
// nothing [ErrNotPending].
func (r *Run) Approve(ctx context.Context, callID, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Approve, CallID: callID, Text: reason})
}

// ApproveEdited lets a pending call run with other arguments, which are
// validated and judged like the model's own; see [Decision].
func (r *Run) ApproveEdited(ctx context.Context, callID string, args json.RawMessage, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Approve, CallID: callID, Args: args, Text: reason})
}

// Reject declines a pending call; the model is told why.
func (r *Run) Reject(ctx context.Context, callID, reason string) error {
	return r.send(ctx, journal.Command{Kind: journal.Reject, CallID: callID, Text: reason})
}

// Raise replaces one limit of the run by its setting's name ("max_cycles",
// "usd_per_run"). The error is a [*budget.UnpricedError] for a cap in money where
// a model that the run, or an agent that it offers, may call has no price.
func (r *Run) Raise(ctx context.Context, setting string, value float64) error {
	return r.send(ctx, journal.Command{Kind: journal.Raise, Setting: setting, Value: value})
}

func (r *Run) send(ctx context.Context, c journal.Command) error {
	c.By = "the program"
	return r.run.Send(ctx, c)
}
