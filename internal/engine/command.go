package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// wake wakes a driver of this engine, if that run has one, as a command does. That
// of a parent is told to which of its children something was said.
func (e *Engine) wake(run, child string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.drivers[run]
	if d == nil {
		return
	}
	if child != "" {
		d.children.spokenTo.note(child)
	}
	d.inbox.notify()
}

// wakeAbove tells the drivers of all runs above one that somebody has said
// something to it.
func (e *Engine) wakeAbove(ctx context.Context, row journal.Run) {
	for row.Parent != "" {
		e.wake(row.Parent, row.ID)
		above, err := e.store.Run(ctx, row.Parent)
		if err != nil {
			return // they look for themselves before long
		}
		row = above
	}
}

// Send delivers a command. The run's driver consumes it, wherever it is; with
// no live driver the command is settled here: a cancel ends the run, and
// anything else is journalled for a run that is parked. A run that was left
// without having parked takes it when it is resumed. A decision may be sent to the
// run that asks, or to any above it.
//
// What may hold secrets of the run that neither the sender nor anybody here
// knows is only for the eyes of the process that drives the run, which can take
// them out: see [Engine.Tell]. A cancel is always taken, if need be without its
// reason.
func (e *Engine) Send(ctx context.Context, c journal.Command) error {
	_, err := e.send(ctx, c, sender{})
	return err
}

// Receipt says how a command went on its way.
type Receipt struct {
	// ID is the command's number in the inbox.
	ID int64
	// Sealed says that nobody but the process that drives the run can read the
	// command where it rests.
	Sealed bool
	// Unsaid is why a cancel went without its reason, a *[SecretsError], or nil.
	Unsaid error
}

// Tell is [Engine.Send] for a sender that may have secrets of the run. The error
// is a *[SecretsError] where no process with a key
// drives the run, and [holder.ErrUnread] where the one that did was found to have left;
// what is sent just before it dies is counted in the run.resumed of whoever takes
// the run up.
func (e *Engine) Tell(ctx context.Context, c journal.Command, k Knowledge) (Receipt, error) {
	return e.send(ctx, c, sender{knows: k})
}

// sender is who sends a command: the driver of the run or of its parent, or
// whoever else with what that knows.
type sender struct {
	driver *driver
	knows  Knowledge
}

func (e *Engine) send(ctx context.Context, c journal.Command, from sender) (r Receipt, err error) {
	if c.Kind == journal.Raise {
		if err := new(budget.Limits).Set(c.Setting, c.Value); err != nil {
			return r, fmt.Errorf("engine: send %s: %w", c.Kind, err)
		}
	}
	if c.Run, err = e.Addressee(ctx, c); err != nil {
		return r, err
	}
	if err := e.decidable(ctx, c); err != nil {
		return r, err
	}
	if err := e.keepable(ctx, c); err != nil {
		return r, err
	}
	if err := drive.Sendable(c.Media); err != nil {
		return r, fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	row, err := e.store.Run(ctx, c.Run)
	if err != nil {
		return r, fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	known, err := e.knownSecrets(ctx, row, from, c)
	if err != nil {
		return r, fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	c, clean := known.clean(c)
	c.At = e.opts.Now().UTC()
	if !clean {
		if c, r, err = e.confided(row, c, known); err != nil {
			return r, err
		}
	}
	r.ID, err = e.deliver(ctx, c, row.Seq, known)
	e.wakeAbove(ctx, row)
	return r, err
}

// keepable refuses a limit that the run could not keep.
func (e *Engine) keepable(ctx context.Context, c journal.Command) error {
	if c.Kind != journal.Raise || !budget.IsMoney(c.Setting) {
		return nil
	}
	m, err := e.Inspect(ctx, c.Run)
	if err != nil {
		return err
	}
	if capped, ok := m.(machine.Capped); ok && m.State().Phase != machine.Ended {
		err = capped.CanKeep(c.Setting, c.Value)
	}
	if err != nil {
		return fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	return nil
}

// confided is a command as it may rest where some of the run's secrets are not
// known here: sealed, or a cancel without its reason.
func (e *Engine) confided(row journal.Run, c journal.Command, known knownSecrets) (journal.Command, Receipt, error) {
	sealed, err := e.confide(row, c)
	switch {
	case err == nil:
		return sealed, Receipt{Sealed: true}, nil
	case c.Kind == journal.Cancel:
		c.Text = ""
		return c, Receipt{Unsaid: known.unknown(row.ID, err)}, nil
	}
	return c, Receipt{}, known.unknown(row.ID, err)
}

// deliver puts a command into the inbox, which gives it its number, and answers
// it where nobody drives the run, whose last event before was that with the
// number seq.
func (e *Engine) deliver(ctx context.Context, c journal.Command, seq int64, known knownSecrets) (id int64, err error) {
	if c.ID, err = e.store.Send(ctx, c); err != nil {
		return 0, fmt.Errorf("engine: send %s: %w", c.Kind, err)
	}
	e.wake(c.Run, "")
	a := answers{seen: map[int64]bool{}, refused: map[int64]bool{}, secrets: known}
	err = e.answer(ctx, c.Run, &a)
	switch {
	case err != nil:
	case a.refused[c.ID] && c.Sealed != nil:
		err = holder.ErrUnread
	case a.refused[c.ID] && c.Kind == journal.Raise:
		err = &RaiseError{Run: c.Run, Setting: c.Setting, AtLeast: a.atLeast}
	case a.refused[c.ID]:
		err = e.undecidable(ctx, c)
	default:
		err = e.endedUntaken(ctx, c, seq)
	}
	return c.ID, err
}

// endedUntaken is [journal.ErrEnded] for a run that ended while a command was on its
// way, and without it.
func (e *Engine) endedUntaken(ctx context.Context, c journal.Command, seq int64) error {
	row, err := e.store.Run(ctx, c.Run)
	if err != nil || row.State != journal.Ended {
		return nil // that the command was sent is all that is known
	}
	taken, err := e.HasTaken(ctx, c, seq)
	if err == nil && !taken {
		err = fmt.Errorf("engine: send %s: run %s: %w", c.Kind, c.Run, journal.ErrEnded)
	}
	return err
}

// confide seals a command to whoever drives a run. The error is [holder.ErrNoKey] where
// nobody does who could read it.
func (e *Engine) confide(row journal.Run, c journal.Command) (journal.Command, error) {
	if row.Owner == "" || !row.Expiry.After(e.opts.Now()) || holder.Gone(row.Owner) {
		return c, holder.ErrNoKey
	}
	return holder.Seal(row.Owner, c)
}

// unreadable counts the commands that were sealed to somebody who is gone.
func (e *Engine) unreadable(sent []journal.Command) (n int) {
	for _, c := range sent {
		if _, readable := e.letters.Open(c); !readable {
			n++
		}
	}
	return n
}
