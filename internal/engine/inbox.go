package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// inbox has what a run is told from outside.
type inbox struct {
	*core
	children *children
	above    *parentRun
	wake     *driverLock
	// commanded says that commands came which nobody has taken up. Those of this engine
	// wake the driver's goroutine at once, and sent does for all that the store tells of,
	// these as well.
	commanded atomic.Bool
	sent      <-chan struct{}
	// raisedAbove says that a limit of a run above was changed.
	raisedAbove atomic.Bool
	// seen are the commands that were taken.
	seen map[int64]bool
}

// notify says that a command is there. It is safe for concurrent use.
func (b *inbox) notify() {
	b.commanded.Store(true)
	b.wake.notify()
}

// notifyRaised says that a run above may have more room. It is safe for concurrent use.
func (b *inbox) notifyRaised() {
	b.raisedAbove.Store(true)
	b.notify()
}

// take takes the commands that were not taken before, oldest first.
func (b *inbox) take(ctx context.Context) ([]journal.Command, error) {
	all, err := b.log.store.Inbox(ctx, b.run.id)
	if err != nil {
		return nil, err
	}
	var news []journal.Command
	for _, c := range all {
		if !b.seen[c.ID] {
			b.seen[c.ID] = true
			news = append(news, c)
		}
	}
	return news, nil
}

// takeCommands turns the rows of the run's inbox into events. Each row is
// taken once, and consumed by the commit of what it became.
func (b *inbox) takeCommands(ctx context.Context) error {
	b.commanded.Store(false)
	if b.raisedAbove.Swap(false) {
		b.children.limitChanged()
	}
	if err := b.above.takeMail(); err != nil {
		return err
	}
	if b.log.lease.unmade {
		return nil // nobody could send it any
	}
	news, err := b.take(ctx)
	if err != nil {
		return b.log.failed(err)
	}
	known := b.env.knownSecrets()
	for _, c := range news {
		b.log.consumed = append(b.log.consumed, c.ID)
		if err := b.takeCommand(c, known); err != nil {
			return err
		}
	}
	return b.children.wake(ctx)
}

// takeCommand journals what a command becomes.
func (b *inbox) takeCommand(c journal.Command, known knownSecrets) error {
	c, readable := b.engine.letters.Open(c)
	if !readable {
		return nil
	}
	c, _ = known.clean(c)
	if c.Kind == journal.Cancel {
		return b.cancel(event.CancelRequested{By: c.By, Reason: c.Text, Principal: c.Principal})
	}
	data := b.env.translate(c, b.machine)
	if data == nil {
		return nil
	}
	if data.EventType() == event.TypeBudgetRaised {
		b.children.limitChanged()
	}
	return b.stage(data)
}

// overrule drops the pauses that were sent before somebody resumed the run, who
// has decided otherwise.
func (b *inbox) overrule(sent []journal.Command) {
	for _, c := range sent {
		if c.Kind == journal.Pause {
			b.seen[c.ID] = true
			b.log.consumed = append(b.log.consumed, c.ID)
		}
	}
}

// translate gives the event that a command becomes, or nil for a decision on
// what does not wait for one (any more).
func (env *environment) translate(c journal.Command, m machine.Machine) event.Data {
	switch c.Kind {
	case journal.Pause:
		return event.PauseRequested{By: c.By, Command: c.ID, Principal: c.Principal}
	case journal.Input:
		return env.record.Blobs.Detach(event.InputReceived{Text: c.Text, Media: c.Media, By: c.By, Command: c.ID, Principal: c.Principal})
	case journal.Raise:
		return event.BudgetRaised{Setting: c.Setting, Value: c.Value, By: c.By, Command: c.ID, Principal: c.Principal}
	case journal.Approve, journal.Reject:
		return decision(c, m.State())
	}
	return nil
}

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

// RaiseError is returned for a new value of the limit that a run parked for,
// with which it would only park again. The limit is as it was.
type RaiseError struct {
	Run, Setting string
	// AtLeast is what the limit must be for the run to go on.
	AtLeast float64
}

// Error says what would be enough.
func (e *RaiseError) Error() string {
	return "run " + e.Run + " would park again at once: " + e.Setting + " must be at least " +
		strconv.FormatFloat(e.AtLeast, 'f', -1, 64) + " for the run to continue, or none"
}
