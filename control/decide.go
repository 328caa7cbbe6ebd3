package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm"
)

// ArgsError is what a tool says against arguments that a decision gives a call.
type ArgsError struct{ Message string }

// Error is the tool's own sentence.
func (e *ArgsError) Error() string { return e.Message }

// CheckArgs refuses arguments for a pending call that its tool would refuse: a
// slip must not use the question up. The error is then an [*ArgsError].
func (d *Desk) CheckArgs(ctx context.Context, p Pending, args json.RawMessage) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return &ArgsError{Message: "no JSON object: " + err.Error()}
	}
	if object == nil {
		return &ArgsError{Message: "no JSON object"}
	}
	started, err := d.started(ctx, p.Run)
	if err != nil || started.Spec == "" {
		return err
	}
	// What the run's tools need may be missing here; the run checks again.
	problem, err := launch.CheckCall(started, llm.ToolCall{CallID: p.CallID, Name: p.Tool, Args: args})
	if err == nil && problem != nil {
		return &ArgsError{Message: problem.Message}
	}
	return nil
}

// OfProgram says that a program which embeds Pawl started a run, so that nobody
// else can go on with it.
func (d *Desk) OfProgram(ctx context.Context, run string) (bool, error) {
	started, err := d.started(ctx, run)
	return err == nil && started.Spec == "", err
}

// Decided is the newest decision about a command's call, which the run may have
// made that the command names or one that this started. It is nil when there is
// none.
func (d *Desk) Decided(ctx context.Context, c journal.Command) (*event.ToolApprovalResolved, error) {
	return d.engine.Decision(ctx, d.engine.Addressee(ctx, c), c.CallID)
}

// Overtaken is the error of somebody whose decision, sent at that time, came
// second: the driver of a run takes the first and passes over the others. It is
// an [*engine.DecidedError], and nil for what is no decision and as long as
// there is none.
func (d *Desk) Overtaken(ctx context.Context, c journal.Command, sent time.Time) error {
	if c.Kind != journal.Approve && c.Kind != journal.Reject {
		return nil
	}
	made, err := d.Decided(ctx, c)
	switch {
	case err != nil || made == nil:
		return err
	case made.At.Before(sent), made.Approver != c.By, (made.Kind == event.ApprovalRejected) != (c.Kind == journal.Reject):
		return &engine.DecidedError{Decision: *made}
	}
	return nil
}
