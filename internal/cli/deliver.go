package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// deliver sends a command to a run, whichever process drives it.
func (s *session) deliver(ctx context.Context, r journal.Run, c journal.Command, asJSON bool) error {
	d, err := s.send(ctx, r, c)
	if err != nil {
		return err
	}
	if asJSON {
		return s.app.printJSON(d)
	}
	if d.Unsaid != "" {
		if err := s.app.printf("run %s: the reason was left out: %s\n", d.Run, d.Unsaid); err != nil {
			return err
		}
	}
	if c.Kind == journal.Pause {
		s.app.showAddress(d.Run)
	}
	what := strings.TrimSpace(d.Command + " " + c.CallID)
	switch {
	case d.Live && d.Taken && c.Kind == journal.Pause && d.State == journal.Waiting:
		return s.app.printf("run %s: pause received by its process; the run pauses when its current call has finished\n", d.Run)
	case d.Live && d.Taken:
		return s.app.printf("run %s: %s received by its process\n", d.Run, what)
	case d.Live:
		return s.app.printf("run %s: %s sent to its process, which has not read it yet\n", d.Run, what)
	case d.State == journal.Ended:
		return s.app.printf("run %s: %s recorded, the run has ended\n", d.Run, what)
	}
	return s.app.printf("run %s: %s recorded; %s\n", d.Run, what, s.resumeCommand(ctx, r))
}

// resumeCommand returns the command that resumes a run that has not ended.
func (s *session) resumeCommand(ctx context.Context, r journal.Run) string {
	pawl := s.app.invocation()
	if whole, err := s.store.Run(ctx, toResume(r)); err == nil {
		switch started, err := s.controller.StartOf(ctx, whole.ID); {
		case err != nil:
		case started.Replays != "":
			return notGoingOn(started.Replays, pawl)
		case started.Spec == "":
			return "continue " + inProgram
		}
	}
	return "continue with: " + pawl + " runs resume " + toResume(r)
}

// send is [control.Controller.Send] in the name of the user of this command.
func (s *session) send(ctx context.Context, r journal.Run, c journal.Command) (control.Delivery, error) {
	if c.Kind == journal.Input || c.Kind == journal.Raise {
		if err := s.sentByPerson(ctx); err != nil {
			return control.Delivery{}, err
		}
	}
	unsaid := ""
	if s.unread != nil && engine.MayHoldSecret(c) {
		err := usagef("the text for run %s could bring a credential of the config file into its journal: %w", r.ID, s.unread)
		if c.Kind != journal.Cancel {
			return control.Delivery{}, err
		}
		c.Text, unsaid = "", err.Error()
	}
	c.Principal = itsUser()
	c.By = c.Principal.Name
	d, err := s.controller.Send(ctx, r, c)
	d.Unsaid = cmp.Or(d.Unsaid, unsaid)
	switch {
	case errors.Is(err, journal.ErrEnded):
		if now, readErr := s.store.Run(ctx, r.ID); readErr == nil {
			r = now
		}
		return d, usageError(s.endedError(ctx, r))
	case errors.Is(err, engine.ErrNotPending) && !errors.As(err, new(*engine.MessageError)), errors.Is(err, holder.ErrUnread):
		return d, usageError(err)
	}
	if asked, ok := errors.AsType[*engine.MessageError](err); ok {
		return d, usagef("%w; answer it with: %s runs input %s \"…\" --resume", asked, s.app.invocation(), asked.Run)
	}
	if missing, ok := errors.AsType[*engine.SecretsError](err); ok {
		return d, usageError(missing)
	}
	if unpriced, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return d, usagef("run %s: %w", r.ID, unpriced)
	}
	if small, ok := errors.AsType[*engine.RaiseError](err); ok {
		return d, usageError(small)
	}
	return d, err
}

// deliverAndResume delivers a command and, with --resume, resumes the run. A run
// with a driver continues by itself.
func (s *session) deliverAndResume(ctx context.Context, r journal.Run, c journal.Command, f verbFlags) error {
	elsewhere := control.Alive(r, time.Now())
	switch {
	case s.app.recordPath == "":
	case !f.resume:
		return usagef("--record needs --resume: without it there is nothing to record")
	case elsewhere:
		return usagef("--record: run %s is driven by another process, which alone can record it", r.ID)
	}
	if !f.resume || elsewhere {
		return s.deliver(ctx, r, c, f.json)
	}
	switch of, err := s.controller.OfProgram(ctx, toResume(r)); {
	case err != nil:
		return err
	case of:
		return usagef("%w; without --resume, that program receives it when it resumes the run", launch.ErrNoFile)
	}
	sent := time.Now()
	d, err := s.send(ctx, r, c)
	if err != nil {
		return err
	}
	now, err := s.store.Run(ctx, toResume(r))
	if err != nil {
		return err
	}
	err = s.resume(ctx, now, f.output, approving{mode: string(agent.ApproveAsk)})
	err = halfway(fmt.Sprintf("run %s: %s recorded", r.ID, control.Verb(c.Kind)), err)
	if d.Taken {
		return err
	}
	// Another process drove the run at that moment and may have recorded another
	// decision.
	c.ID, c.Run, c.By = d.ID, r.ID, whoAmI()
	if second := s.controller.Overtaken(ctx, c, sent); errors.Is(second, engine.ErrNotPending) {
		return usageError(second)
	}
	return err
}
