package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm"
	"github.com/spf13/cobra"
)

func (a *app) approveCommand() *cobra.Command {
	var args string
	c := a.decisionCommand(journal.Approve, &args)
	c.Use, c.Short = "approve RUN CALL", "Approve a call that waits for a decision"
	c.Long += `
With --args the call runs with other arguments than the model gave. They are validated and judged like the
model's own; where a rule asks about them that did not ask before, the call waits for another decision. The
model is told what ran.`
	c.Example = `  pawl runs approve k7x2 k7x2…-3-1
  pawl runs approve k7x2 3-1 --reason "reviewed" --resume
  pawl runs approve k7x2 3-1 --args '{"command": "git push origin review"}' --resume`
	c.Flags().StringVar(&args, "args", "", "run the call with these arguments instead: a JSON object, or a file that holds one")
	return c
}

func (a *app) rejectCommand() *cobra.Command {
	c := a.decisionCommand(journal.Reject, new(string))
	c.Use, c.Short = "reject RUN CALL", "Reject a call that waits for a decision; the model is told why"
	c.Example = "  pawl runs reject k7x2 3-1 --reason \"not on a Friday\" --resume"
	return c
}

// decisionCommand is approve or reject; edited are the arguments with which an
// approved call is to run, where the user gives any.
func (a *app) decisionCommand(kind journal.CommandKind, edited *string) *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Long: "CALL is the id that the run's pending approval names, or the end of it (\"3-1\"); 'pawl runs show' lists them.",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if kind == journal.Reject && strings.TrimSpace(f.reason) == "" {
				return usagef("a rejection needs a --reason: it is what the model is told")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if err := s.decidedByPerson(c.Context()); err != nil {
					return err
				}
				p, err := s.pendingCall(c.Context(), r, args[1])
				if err != nil {
					return err
				}
				command := journal.Command{Kind: kind, CallID: p.CallID, Text: f.reason}
				if command.Args, err = s.editedArgs(c.Context(), r, p, *edited); err != nil {
					return err
				}
				return s.deliverAndResume(c.Context(), r, command, f)
			})
		},
	}
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the record and for the model")
	f.resumable(c, &a.recordPath)
	return c
}

// decidedByPerson refuses a decision that a run's own tool or hook would make:
// what a run starts can decide about no call, its own or another run's.
func (s *session) decidedByPerson(ctx context.Context) error {
	rows, err := s.store.Runs(ctx, journal.Filter{States: []journal.State{journal.Running, journal.Waiting}})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Owner != "" && engine.StartedBy(r.Owner) {
			return usagef("this command was started by run %s, and no run decides about calls; a person must", r.ID)
		}
	}
	return nil
}

// pendingCall finds the call that waits for a decision and that a user named.
func (s *session) pendingCall(ctx context.Context, r journal.Run, name string) (event.ToolPendingApproval, error) {
	m, err := s.engine.Inspect(ctx, r.ID)
	if err != nil {
		return event.ToolPendingApproval{}, err
	}
	p, err := matchCall(r.ID, m.State().Pending, name)
	if err == nil {
		return p, nil
	}
	for _, id := range []string{name, r.ID + "-" + name} {
		if d, readErr := s.engine.Decision(ctx, r.ID, id); readErr == nil && d != nil {
			return p, usageError(&engine.DecidedError{Decision: *d})
		}
	}
	return p, err
}

func matchCall(run string, pending []event.ToolPendingApproval, name string) (event.ToolPendingApproval, error) {
	var ids []string
	var fits []event.ToolPendingApproval
	for _, p := range pending {
		ids = append(ids, p.CallID)
		switch {
		case p.CallID == name:
			return p, nil
		case strings.HasSuffix(p.CallID, "-"+name):
			fits = append(fits, p)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(ids) == 0:
		return event.ToolPendingApproval{}, usagef("run %s waits for no decision", run)
	}
	return event.ToolPendingApproval{}, usagef("call %q of run %s waits for no decision; these do: %s", name, run, strings.Join(ids, ", "))
}

// editedArgs reads the arguments that a user gives a call, and refuses what the
// tool would refuse: a slip must not use the question up.
func (s *session) editedArgs(ctx context.Context, r journal.Run, p event.ToolPendingApproval, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, usagef("--args is neither a JSON object nor a file: %w", err)
		}
		text = string(content)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, usagef("--args is no JSON object: %w", err)
	}
	args := json.RawMessage(text)
	records, err := s.store.Records(ctx, r.ID, 0, 1)
	if err != nil || len(records) == 0 {
		return nil, errors.Join(fmt.Errorf("read the first event of run %s", r.ID), err)
	}
	first, err := event.Decode(records[0].Body)
	if err != nil {
		return nil, err
	}
	if started, ok := first.Data.(event.RunStarted); ok && started.Spec != "" {
		// What the run's tools need may be missing here; the run checks again.
		problem, err := launch.CheckCall(started, llm.ToolCall{CallID: p.CallID, Name: p.Tool, Args: args})
		if err == nil && problem != nil {
			return nil, usagef("--args: %s", problem.Message)
		}
	}
	return args, nil
}

// overtaken is the error of somebody whose decision came second: the driver of
// a run takes the first and passes over the others.
func (s *session) overtaken(ctx context.Context, c journal.Command, sent time.Time) error {
	if c.Kind != journal.Approve && c.Kind != journal.Reject {
		return nil
	}
	d, err := s.engine.Decision(ctx, c.Run, c.CallID)
	switch {
	case err != nil || d == nil:
		return err
	case d.At.Before(sent), d.Approver != c.By, (d.Kind == event.ApprovalRejected) != (c.Kind == journal.Reject):
		return usageError(&engine.DecidedError{Decision: *d})
	}
	return nil
}
