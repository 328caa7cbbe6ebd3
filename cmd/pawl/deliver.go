package main

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine/agent"
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
	sent := time.Now()
	live := driven(r, sent)
	err := s.engine.Send(ctx, c)
	if errors.Is(err, journal.ErrEnded) {
		if now, readErr := s.store.Run(ctx, r.ID); readErr == nil {
			r = now
		}
		return delivery{}, usageError(endedError(r))
	}
	if errors.Is(err, engine.ErrNotPending) {
		return delivery{}, usageError(err)
	}
	if err != nil {
		return delivery{}, err
	}
	taken, err := s.taken(ctx, r.ID)
	if err != nil {
		return delivery{}, err
	}
	if taken {
		if err := s.overtaken(ctx, c, sent); err != nil {
			return delivery{}, err
		}
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
	elsewhere := driven(r, time.Now())
	switch {
	case s.app.recordPath == "":
	case !f.resume:
		return usagef("--record goes with --resume: without it nothing runs here that could be recorded")
	case elsewhere:
		return usagef("--record: run %s is driven by another process, and only that could record it", r.ID)
	}
	if !f.resume || elsewhere {
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
