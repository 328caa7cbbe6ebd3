package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// ArgsError is the error of a tool about the arguments of a decision.
type ArgsError struct {
	Message string
	// Fields are the errors in the fields of an answer to a form.
	Fields []tool.FieldError
}

// Error returns the tool's message.
func (e *ArgsError) Error() string { return e.Message }

// CheckArgs rejects arguments for a pending call that its tool would reject, and an
// answer that does not fit its form, so that a mistake does not use up the decision.
// The error is then an [*ArgsError].
func (d *Controller) CheckArgs(ctx context.Context, p Pending, args json.RawMessage) error {
	if form, is := p.What.(event.FormAsked); is {
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		if wrong, is := errors.AsType[*tool.InputError](tool.CheckInput(form.Schema, args)); is {
			return &ArgsError{Message: wrong.Error(), Fields: wrong.Fields}
		}
		return nil
	}
	call, is := p.Call()
	if !is {
		return &ArgsError{Message: fmt.Sprintf("%s %s takes no arguments", p.Kind, p.ID)}
	}
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
	// Dependencies of the run's tools may be missing here; the run checks again.
	problem, err := kinds.CheckCall(started, llm.ToolCall{CallID: call.CallID, Name: call.Tool, Args: args})
	if err == nil && problem != nil {
		return &ArgsError{Message: problem.Message}
	}
	return nil
}

// OfProgram reports whether a program that embeds Pawl started a run, so that only that
// program can resume it.
func (d *Controller) OfProgram(ctx context.Context, run string) (bool, error) {
	started, err := d.started(ctx, run)
	return err == nil && started.Spec == "", err
}

// Decided returns the newest decision about a command's question, which the named run
// or a descendant may have asked. It returns nil if there is none.
func (d *Controller) Decided(ctx context.Context, c journal.Command) (event.Resolving, error) {
	made, err := d.decisions(ctx, c)
	if err != nil || len(made) == 0 {
		return nil, err
	}
	return made[0], nil
}

// decisions returns the decisions about a command's question, newest first.
func (d *Controller) decisions(ctx context.Context, c journal.Command) ([]event.Resolving, error) {
	run, err := d.engine.Addressee(ctx, c)
	if err != nil {
		return nil, err
	}
	return d.engine.Decisions(ctx, run, c.CallID)
}

// Overtaken returns the error for a decision that was sent at a time and lost to
// another one: a run's driver takes the first decision and ignores the others.
// The error is an [*engine.DecidedError]. It is nil if c is not a decision or if
// there is no other. Equal decisions differ in c.ID; decisions made at a
// terminal, or recorded by an older version, have no number.
func (d *Controller) Overtaken(ctx context.Context, c journal.Command, sent time.Time) error {
	if c.Kind != journal.Approve && c.Kind != journal.Reject {
		return nil
	}
	all, err := d.decisions(ctx, c)
	if err != nil || len(all) == 0 {
		return err
	}
	made, numbered := all[0].Resolution(), false
	for _, each := range all {
		one := each.Resolution()
		if c.ID != 0 && one.Command == c.ID && one.Kind != event.ApprovalExpired {
			return nil
		}
		numbered = numbered || one.Command != 0
	}
	switch {
	case c.ID != 0 && numbered,
		made.At.Before(sent), made.Approver != c.By, (made.Kind == event.ApprovalRejected) != (c.Kind == journal.Reject):
		return &engine.DecidedError{Decision: all[0]}
	}
	return nil
}
