package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) approveCommand() *cobra.Command {
	var args string
	var remember bool
	var input []string
	c := a.decisionCommand(journal.Approve, &args, &input, &remember)
	c.Use, c.Short = "approve RUN CALL", "Approve a call that waits for a decision, or answer what it asks for"
	c.Long += `
With --args the call runs with other arguments than the model gave. They are validated and judged like the
model's own; where a rule asks about them that did not ask before, the call waits for another decision. The
result names what ran, so the model sees it.

A call that asks for input is answered with --input NAME=VALUE, one for each field that 'pawl runs show' lists; a
field of several values takes several. A page that the call names is opened by you, never by Pawl.`
	c.Example = `  pawl runs approve k7x2 3-1
  pawl runs approve k7x2 3-1 --reason "reviewed" --resume
  pawl runs approve k7x2 3-1 --input port=8080 --input env=staging --resume
  pawl runs approve k7x2 3-1 --args '{"command": "git push origin review"}' --resume`
	c.Flags().StringArrayVar(&input, "input", nil, "answer a field of the form that the call asks to be filled in, as `NAME=VALUE` (may be repeated)")
	c.Flags().BoolVar(&remember, "remember", false, "also allow what the question offers for the rest of the run, as 'a' does at the terminal")
	c.Flags().StringVar(&args, "args", "", "run the call with these arguments instead: a JSON object, or a file with one")
	return c
}

func (a *app) rejectCommand() *cobra.Command {
	c := a.decisionCommand(journal.Reject, new(string), nil, new(bool))
	c.Use, c.Short = "reject RUN CALL", "Reject a call that waits for a decision, or decline what it asks for; the model sees the reason"
	c.Example = "  pawl runs reject k7x2 3-1 --reason \"not on a Friday\" --resume"
	return c
}

// decisionCommand returns the command approve or reject; edited holds the arguments
// for an approved call, if the user gives any, and input the answer to a form, nil for a
// rejection.
func (a *app) decisionCommand(kind journal.CommandKind, edited *string, input *[]string, remember *bool) *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Long: `CALL is the id of the call, or the end of it: "3-1" is a call of RUN itself, "k7x2-3-1" one of RUN or of a
run below it whose id begins with k7x2. A review is named by its loop's id. 'pawl runs show' lists what waits.
`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if c.Flags().Changed("args") && strings.TrimSpace(*edited) == "" {
				return usagef("--args is empty: give a JSON object, or a file that holds one, or leave it out to approve the call as it is")
			}
			if input != nil && len(*input) > 0 && *edited != "" {
				return usagef("--args and --input are both given; leave one out")
			}
			if kind == journal.Reject && strings.TrimSpace(f.reason) == "" {
				return usagef("a rejection needs a --reason: the model reads it")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if err := s.decidedByPerson(c.Context()); err != nil {
					return err
				}
				p, err := s.pendingQuestion(c.Context(), r, args[1])
				if err != nil {
					return err
				}
				command := journal.Command{Kind: kind, CallID: p.ID, Text: f.reason, Remember: *remember}
				if *remember && (p.Offer == nil || *edited != "") {
					return usagef("--remember is for a call as it is, whose question offers a rule for the rest of the run; %s does not", p.ID)
				}
				if command.Args, err = s.editedArgs(c.Context(), p, *edited); err != nil {
					return err
				}
				if input != nil && command.Args == nil {
					if command.Args, err = s.answerTo(c.Context(), p, *input); err != nil {
						return err
					}
				}
				return s.deliverAndResume(c.Context(), r, command, f)
			})
		},
	}
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the record and for the model")
	f.resumable(c, &a.recordPath)
	return c
}

// decidedByPerson rejects a decision by a run's own tool or hook: what a run starts
// may not decide any call.
func (s *session) decidedByPerson(ctx context.Context) error {
	return s.notOfRun(ctx, "a run cannot decide about calls; a person must")
}

// sentByPerson rejects a message from a run's own tool or hook: a model takes a
// message for its user's, and a limit belongs to the owner.
func (s *session) sentByPerson(ctx context.Context) error {
	return s.notOfRun(ctx, "a run cannot send messages in a person's place or raise a limit; a person must")
}

func (s *session) notOfRun(ctx context.Context, because string) error {
	run, err := s.controller.StartedByRun(ctx)
	switch {
	case errors.Is(err, control.ErrCannotTell):
		return usagef("%w: %s, from outside of it", err, because)
	case err == nil && run != "":
		return usagef("this command was started by run %s, and %s", run, because)
	}
	return err
}

// pendingQuestion finds the open question that the user named.
func (s *session) pendingQuestion(ctx context.Context, r journal.Run, name string) (control.Pending, error) {
	pending, err := s.controller.Pending(ctx, r.ID)
	if err != nil {
		return control.Pending{}, err
	}
	name = strings.TrimPrefix(name, r.ID+"/") // a review has this form in clients of loops
	if p, err := theOne(r, pending, name); p.ID != "" || err != nil {
		return p, err
	}
	below, err := s.controller.Below(ctx, r.ID)
	if err != nil {
		return control.Pending{}, err
	}
	id, err := wholeCall(r.ID, below, name)
	if err != nil {
		return control.Pending{}, err
	}
	var waiting []string
	for _, p := range pending {
		if p.ID == id {
			return p, nil
		}
		waiting = append(waiting, p.ID)
	}
	these := strings.Join(waiting, ", ")
	d, err := s.controller.Decided(ctx, journal.Command{Kind: journal.Approve, Run: r.ID, CallID: id})
	if err == nil && d == nil { // the id of a review does not start with a run's id
		d, err = s.controller.Decided(ctx, journal.Command{Kind: journal.Approve, Run: r.ID, CallID: name})
	}
	switch decided := err == nil && d != nil; {
	case decided && these != "":
		return control.Pending{}, usagef("%w; these wait: %s", &engine.DecidedError{Decision: d}, these)
	case decided:
		return control.Pending{}, usageError(&engine.DecidedError{Decision: d})
	case these == "":
		return control.Pending{}, usagef("run %s waits for no decision", r.ID)
	}
	return control.Pending{}, usagef("call %q of run %s waits for no decision; these do: %s", name, r.ID, these)
}

// theOne returns the question with an id, the zero value if there is none.
func theOne(r journal.Run, pending []control.Pending, id string) (one control.Pending, err error) {
	var asked []string
	for _, p := range pending {
		if p.ID == id {
			one, asked = p, append(asked, p.Run)
		}
	}
	if len(asked) > 1 {
		return control.Pending{}, usageError(&engine.AmbiguousError{Run: r.ID, ID: id, Candidates: asked})
	}
	return one, nil
}

// editedArgs reads the user's arguments for a call, and rejects what the tool would
// reject, because a slip must not use up the question.
func (s *session) editedArgs(ctx context.Context, p control.Pending, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		content, err := readFileBounded(text)
		if err != nil {
			return nil, usagef("--args is neither a JSON object nor a file: %w", err)
		}
		text = string(content)
	}
	if err := textual("--args", text); err != nil {
		return nil, err
	}
	args := json.RawMessage(text)
	err := s.controller.CheckArgs(ctx, p, args)
	if wrong, ok := errors.AsType[*control.ArgsError](err); ok {
		return nil, usagef("--args: %s", wrong.Message)
	}
	return args, err
}
