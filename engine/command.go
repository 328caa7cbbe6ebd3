package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// deliverInbox wakes the drivers that commands have come for.
func (e *Engine) deliverInbox(ctx context.Context) {
	defer e.ended.Done()
	watch := e.store.WatchInbox(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch:
		}
		cmds, err := e.store.Inbox(ctx, "")
		if err != nil {
			continue
		}
		e.mu.Lock()
		for _, c := range cmds {
			if d := e.drivers[c.Run]; d != nil {
				select {
				case d.inbox <- struct{}{}:
				default:
				}
			}
		}
		e.mu.Unlock()
	}
}

// takeCommands turns the rows of the run's inbox into events.
func (d *driver) takeCommands(ctx context.Context) error {
	cmds, err := d.store.Inbox(ctx, d.run)
	if err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	for _, c := range cmds {
		if d.seen[c.ID] {
			continue
		}
		d.seen[c.ID] = true
		d.consumed = append(d.consumed, c.ID)
		data := d.translate(c)
		if data == nil {
			continue
		}
		if c.Kind == journal.Cancel {
			d.cancelFlights()
		}
		if err := d.stage(data); err != nil {
			return err
		}
	}
	return nil
}

// translate gives the event that a command becomes, or nil for a decision on a
// call that no longer waits for one.
func (d *driver) translate(c journal.Command) event.Data {
	switch c.Kind {
	case journal.Cancel:
		return event.CancelRequested{By: c.By, Reason: c.Text}
	case journal.Pause:
		return event.PauseRequested{By: c.By}
	case journal.Input:
		return event.InputReceived{Text: c.Text, By: c.By}
	case journal.Raise:
		return event.BudgetRaised{Setting: c.Setting, Value: c.Value, By: c.By}
	case journal.Approve, journal.Reject:
		kind := event.ApprovalApproved
		if c.Kind == journal.Reject {
			kind = event.ApprovalRejected
		}
		for _, p := range d.machine.State().Pending {
			if p.CallID == c.CallID {
				return event.ToolApprovalResolved{
					CallID: p.CallID, Kind: kind, Digest: p.Digest, Approver: c.By, Reason: c.Text, At: c.At,
				}
			}
		}
	}
	return nil
}

// Send delivers a command. The run's driver consumes it, wherever it is; with
// no live driver the command is settled here: a cancel ends the run, anything
// else is journalled and waits for the run to be resumed.
func (e *Engine) Send(ctx context.Context, c journal.Command) error {
	c.At = e.opts.Now().UTC()
	if _, err := e.store.Send(ctx, c); err != nil {
		return err
	}
	d, _, err := e.take(ctx, c.Run)
	if _, held := errors.AsType[*journal.HeldError](err); held || errors.Is(err, journal.ErrEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.releaseLease(ctx)
	if err := d.takeCommands(ctx); err != nil {
		return err
	}
	if c.Kind == journal.Cancel {
		if err := d.stage(event.RunResumed{Owner: e.opts.Owner}); err != nil {
			return err
		}
		if err := d.conclude(); err != nil {
			return err
		}
	}
	return d.commit(ctx)
}

// conclude lets a cancelled run's machine make its last decisions; none of
// them needs an effect.
func (d *driver) conclude() error {
	for d.machine.State().Phase == machine.Running {
		actions := d.machine.Next()
		if len(actions) == 0 {
			return fmt.Errorf("engine: run %s does not end by its cancel", d.run)
		}
		for _, a := range actions {
			switch a := a.(type) {
			case machine.Record:
				if err := d.stage(a.Data); err != nil {
					return err
				}
			case machine.Resolve:
				if err := d.stage(d.env.Tools.Resolve(a.CallID, a.Call)); err != nil {
					return err
				}
			default:
				return fmt.Errorf("engine: run %s asks for an effect after its cancel", d.run)
			}
		}
	}
	return nil
}
