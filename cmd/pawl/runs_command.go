package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/spf13/cobra"
)

// delivery is what a verb prints that sent a command to a run.
type delivery struct {
	Run     string              `json:"run"`
	Command journal.CommandKind `json:"command"`
	CallID  string              `json:"callId,omitempty"`
	// Live says that another process drives the run, Taken that the command
	// is in the journal and has its effect.
	Live  bool          `json:"live"`
	Taken bool          `json:"taken"`
	State journal.State `json:"state"`
}

// verbFlags are the flags of the verbs that act on a run.
type verbFlags struct {
	reason string
	resume bool
	output
}

func (f *verbFlags) resumable(c *cobra.Command) {
	c.Flags().BoolVar(&f.resume, "resume", false, "and go on with the run at once")
	f.output.flags(c)
}

func (a *app) pauseCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "pause RUN",
		Short:   "Park a run at its next boundary",
		Example: "  pawl runs pause k7x2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				if r.State == journal.Parked || r.State == journal.Paused {
					return usagef("run %s is not going: %s", r.ID, standing(r))
				}
				return s.deliver(c.Context(), r, journal.Command{Kind: journal.Pause}, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) cancelCommand() *cobra.Command {
	var asJSON bool
	var reason string
	c := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "End a run for good; what it was doing is stopped first",
		Example: "  pawl runs cancel k7x2 --reason \"wrong branch\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliver(c.Context(), r, journal.Command{Kind: journal.Cancel, Text: reason}, asJSON)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func (a *app) inputCommand() *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Use:     "input RUN TEXT",
		Short:   "Add a message to a run; it is read at the next boundary",
		Long:    "Adds a message to a run. TEXT may be \"-\" for stdin.",
		Example: "  pawl runs input k7x2 \"Leave the tests alone\"\n  pawl runs input k7x2 \"Yes, use port 8080\" --resume",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			text, err := a.input(args[1:])
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				return usagef("TEXT is empty")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: journal.Input, Text: text}, f)
			})
		},
	}
	f.resumable(c)
	return c
}

func (a *app) approveCommand() *cobra.Command {
	c := a.decisionCommand(journal.Approve)
	c.Use, c.Short = "approve RUN CALL", "Approve a call that waits for a decision"
	c.Example = "  pawl runs approve k7x2 k7x2…-3-1\n  pawl runs approve k7x2 3-1 --reason \"reviewed\" --resume"
	return c
}

func (a *app) rejectCommand() *cobra.Command {
	c := a.decisionCommand(journal.Reject)
	c.Use, c.Short = "reject RUN CALL", "Reject a call that waits for a decision; the model is told why"
	c.Example = "  pawl runs reject k7x2 3-1 --reason \"not on a Friday\" --resume"
	return c
}

func (a *app) decisionCommand(kind journal.CommandKind) *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Long: "CALL is the id that the run's pending approval names, or the end of it (\"3-1\").",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if kind == journal.Reject && strings.TrimSpace(f.reason) == "" {
				return usagef("a rejection needs a --reason: it is what the model is told")
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				id, err := s.pendingCall(c.Context(), r, args[1])
				if err != nil {
					return err
				}
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: kind, CallID: id, Text: f.reason}, f)
			})
		},
	}
	c.Flags().StringVar(&f.reason, "reason", "", "why, for the record and for the model")
	f.resumable(c)
	return c
}

// pendingCall finds the call that waits for a decision and that a user named.
func (s *session) pendingCall(ctx context.Context, r journal.Run, name string) (string, error) {
	m, err := s.engine.Inspect(ctx, r.ID)
	if err != nil {
		return "", err
	}
	pending := m.State().Pending
	return matchCall(r.ID, pending, name)
}

func matchCall(run string, pending []event.ToolPendingApproval, name string) (string, error) {
	var ids, fits []string
	for _, p := range pending {
		ids = append(ids, p.CallID)
		switch {
		case p.CallID == name:
			return name, nil
		case strings.HasSuffix(p.CallID, "-"+name):
			fits = append(fits, p.CallID)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(ids) == 0:
		return "", usagef("run %s waits for no decision", run)
	}
	return "", usagef("call %q of run %s waits for no decision; these do: %s", name, run, strings.Join(ids, ", "))
}

func (a *app) budgetCommand() *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Use:   "budget RUN SETTING VALUE",
		Short: "Change a limit of a run, also while it goes",
		Long:  "Changes a limit of a run. SETTING is one of: " + strings.Join(limitSettings(), ", ") + ".",
		Example: "  pawl runs budget k7x2 usd_per_run 10\n" +
			"  pawl runs budget k7x2 max_cycles 80",
		Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			value, err := limitValue(args[1], args[2])
			if err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: journal.Raise, Setting: args[1], Value: value}, f)
			})
		},
	}
	f.resumable(c)
	return c
}

// limitSettings are the names of the limits, as the budget rules declare them.
func limitSettings() []string {
	t := reflect.TypeFor[budget.Limits]()
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// limitValue checks a limit's new value against the setting's own type.
func limitValue(setting, text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return 0, usagef("VALUE is %q; it must be a number above 0", text)
	}
	raw, err := json.Marshal(map[string]float64{setting: value})
	if err != nil {
		return 0, usagef("VALUE is %q; it must be a number above 0", text)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	var l budget.Limits
	err = dec.Decode(&l)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType {
		return 0, usagef("VALUE is %q; %s counts whole things", text, setting)
	}
	if err != nil {
		return 0, usagef("there is no limit %q; it can be %s", setting, strings.Join(limitSettings(), ", "))
	}
	return value, nil
}

// deliver sends a command to a run, wherever it is driven.
func (s *session) deliver(ctx context.Context, r journal.Run, c journal.Command, asJSON bool) error {
	d, err := s.send(ctx, r, c)
	if err != nil {
		return err
	}
	if asJSON {
		return s.app.printJSON(d)
	}
	switch {
	case d.Live && d.Taken:
		return s.app.printf("run %s: %s taken up by the process that drives it\n", d.Run, d.Command)
	case d.Live:
		return s.app.printf("run %s: %s sent to the process that drives it, which has not taken it up yet\n", d.Run, d.Command)
	case d.State == journal.Ended:
		return s.app.printf("run %s: %s recorded, the run has ended\n", d.Run, d.Command)
	}
	return s.app.printf("run %s: %s recorded; go on with: pawl runs resume %s\n", d.Run, d.Command, d.Run)
}

func (s *session) send(ctx context.Context, r journal.Run, c journal.Command) (delivery, error) {
	c.Run, c.By = r.ID, whoAmI()
	live := driven(r, time.Now())
	err := s.engine.Send(ctx, c)
	if errors.Is(err, journal.ErrEnded) {
		if now, readErr := s.store.Run(ctx, r.ID); readErr == nil {
			r = now
		}
		return delivery{}, usageError(endedError(r))
	}
	if err != nil {
		return delivery{}, err
	}
	taken, err := s.taken(ctx, r.ID)
	if err != nil {
		return delivery{}, err
	}
	now, err := s.store.Run(ctx, r.ID)
	return delivery{Run: r.ID, Command: c.Kind, CallID: c.CallID, Live: live, Taken: taken, State: now.State}, err
}

// takeUpCommand is how long a command waits for the run's driver, which looks
// for one within 100 ms.
const takeUpCommand = 2 * time.Second

// taken waits until the run's inbox is empty, and says whether it became so.
func (s *session) taken(ctx context.Context, run string) (bool, error) {
	timeout, cancel := context.WithTimeout(ctx, takeUpCommand)
	defer cancel()
	changed := s.store.Watch(timeout)
	for {
		left, err := s.store.Inbox(ctx, run)
		if err != nil || len(left) == 0 {
			return err == nil, err
		}
		select {
		case <-changed:
		case <-timeout.Done():
			return false, ctx.Err()
		}
	}
}

// deliverAndResume is deliver, and where the user asks for it also resume. A
// run that is driven goes on by itself.
func (s *session) deliverAndResume(ctx context.Context, r journal.Run, c journal.Command, f verbFlags) error {
	if !f.resume || driven(r, time.Now()) {
		return s.deliver(ctx, r, c, f.json)
	}
	if _, err := s.send(ctx, r, c); err != nil {
		return err
	}
	now, err := s.store.Run(ctx, r.ID)
	if err != nil {
		return err
	}
	return s.resume(ctx, now, f.output, approving{mode: string(agent.ApproveAsk)})
}
