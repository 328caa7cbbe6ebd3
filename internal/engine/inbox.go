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

// inbox holds the commands to the run.
type inbox struct {
	*core
	children *children
	above    *parentRun
	wake     *driverLock
	// commanded reports whether commands have arrived that the driver has not taken.
	// A command of this engine wakes the driver at once; sent is signalled for all
	// commands that the store reports, including those.
	commanded atomic.Bool
	sent      <-chan struct{}
	// raisedAbove reports whether a limit of a run above changed.
	raisedAbove atomic.Bool
	// seen holds the ids of the commands that were taken.
	seen map[int64]bool
}

// notify signals a command. It is safe for concurrent use.
func (b *inbox) notify() {
	b.commanded.Store(true)
	b.wake.notify()
}

// notifyRaised signals that a limit of a run above changed. It is safe for
// concurrent use.
func (b *inbox) notifyRaised() {
	b.raisedAbove.Store(true)
	b.notify()
}

// take returns the commands that were not taken before, oldest first.
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

// takeCommands turns the rows of the run's inbox into events. Each row is taken
// once, and deleted by the commit that contains its event.
func (b *inbox) takeCommands(ctx context.Context) error {
	b.commanded.Store(false)
	if b.raisedAbove.Swap(false) {
		b.children.limitChanged()
	}
	if err := b.above.takeMail(); err != nil {
		return err
	}
	if b.log.lease.unmade {
		return nil // no command can reach it
	}
	news, err := b.take(ctx)
	if err != nil {
		return b.log.failed(err)
	}
	known := b.knownSecrets()
	for _, c := range news {
		b.log.consumed = append(b.log.consumed, c.ID)
		if err := b.takeCommand(c, known); err != nil {
			return err
		}
	}
	return b.children.wake(ctx)
}

// takeCommand journals the event that a command becomes.
func (b *inbox) takeCommand(c journal.Command, known knownSecrets) error {
	c, readable := b.engine.inboxKey.Open(c)
	if !readable {
		return nil
	}
	c, _ = known.clean(c)
	if c.Kind == journal.Cancel {
		return b.cancel(event.CancelRequested{By: c.By, Reason: c.Text, Principal: c.Principal})
	}
	for _, data := range b.translate(c, b.machine) {
		if data.EventType() == event.TypeBudgetRaised {
			b.children.limitChanged()
		}
		if err := b.stage(data); err != nil {
			return err
		}
	}
	return nil
}

// overrule drops the pauses that were sent before a later resume of the run.
func (b *inbox) overrule(sent []journal.Command) {
	for _, c := range sent {
		if c.Kind == journal.Pause {
			b.seen[c.ID] = true
			b.log.consumed = append(b.log.consumed, c.ID)
		}
	}
}

// translate returns the events that a command becomes, none for a decision on
// something that does not wait for one.
func (c *core) translate(sent journal.Command, m machine.Machine) []event.Data {
	switch sent.Kind {
	case journal.Pause:
		return []event.Data{event.PauseRequested{By: sent.By, Command: sent.ID, Principal: sent.Principal}}
	case journal.Input:
		return []event.Data{c.env.Record.Blobs.Detach(event.InputReceived{Text: sent.Text, Media: sent.Media, By: sent.By, Command: sent.ID, Later: sent.Later, Replaces: sent.Replaces, Mode: sent.Mode, Principal: sent.Principal})}
	case journal.Raise:
		return []event.Data{event.BudgetRaised{Setting: sent.Setting, Value: sent.Value, By: sent.By, Command: sent.ID, Principal: sent.Principal}}
	case journal.Approve, journal.Reject:
		return decision(sent, m.State())
	}
	return nil
}

// wake wakes the driver of a run, if this engine has it, as a command does. It
// passes to the driver of a parent the id of the child that received something.
func (e *Engine) wake(run, child string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.drivers[run]
	if d == nil {
		return
	}
	if child != "" {
		d.children.receivers.note(child)
	}
	d.inbox.notify()
}

// wakeAbove wakes the drivers of all runs above a run that received a command.
func (e *Engine) wakeAbove(ctx context.Context, row journal.Run) {
	for row.Parent != "" {
		e.wake(row.Parent, row.ID)
		above, err := e.store.Run(ctx, row.Parent)
		if err != nil {
			return // they check by themselves soon
		}
		row = above
	}
}

// Send delivers a command. The run's driver takes it, in whichever process it
// is. Without a live driver the command is settled here: a cancel ends the run,
// and anything else is journalled for a parked run. A run whose driver left
// without parking it takes the command when it is resumed. A decision may be
// sent to the run that asks, or to any run above it.
//
// A command that may contain secrets of the run which are unknown here is
// encrypted for the process that drives the run, which can remove them: see
// [Engine.Deliver]. A cancel is always accepted, if necessary without its reason.
func (e *Engine) Send(ctx context.Context, c journal.Command) error {
	_, err := e.send(ctx, c, sender{})
	return err
}

// Receipt describes how a command was delivered.
type Receipt struct {
	// ID is the command's number in the inbox.
	ID int64
	// Sealed reports whether only the process that drives the run can read the
	// command.
	Sealed bool
	// Unsaid is why a cancel went without its reason, a *[SecretsError], or nil.
	Unsaid error
}

// Deliver is [Engine.Send] for a sender that may have secrets of the run. The error
// is a *[SecretsError] if no process with a key drives the run, and
// [holder.ErrUnread] if that process left before it read the command. The next
// run.resumed counts commands that were lost because the process died just after
// they were sent.
func (e *Engine) Deliver(ctx context.Context, c journal.Command, k Knowledge) (Receipt, error) {
	return e.send(ctx, c, sender{knows: k})
}

// sender is the sender of a command and what it knows: the driver of the run or
// of its parent, or another client.
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

// keepable returns an error for a limit that the run could not keep.
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

// confided returns a command in the form in which it may be stored if some of
// the run's secrets are unknown here: sealed, or a cancel without its reason.
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

// deliver puts a command into the inbox, which assigns its number. If no process
// drives the run, it also answers the command. seq is the number of the run's
// last event before that.
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

// endedUntaken returns [journal.ErrEnded] for a run that ended before it took a
// command.
func (e *Engine) endedUntaken(ctx context.Context, c journal.Command, seq int64) error {
	row, err := e.store.Run(ctx, c.Run)
	if err != nil || row.State != journal.Ended {
		return nil // only the delivery is certain
	}
	taken, err := e.HasTaken(ctx, c, seq)
	if err == nil && !taken {
		err = fmt.Errorf("engine: send %s: run %s: %w", c.Kind, c.Run, journal.ErrEnded)
	}
	return err
}

// confide seals a command to the process that drives a run. The error is
// [holder.ErrNoKey] if no process drives it that could read it.
func (e *Engine) confide(row journal.Run, c journal.Command) (journal.Command, error) {
	if row.Owner == "" || !row.Expiry.After(e.opts.Now()) || holder.Gone(row.Owner) {
		return c, holder.ErrNoKey
	}
	return holder.Seal(row.Owner, c)
}

// unreadable counts the commands that were sealed to a process that is gone.
func (e *Engine) unreadable(sent []journal.Command) (n int) {
	for _, c := range sent {
		if _, readable := e.inboxKey.Open(c); !readable {
			n++
		}
	}
	return n
}

// RaiseError is returned for a new value of the limit for which a run parked, if
// the run would park again with it. The limit is unchanged.
type RaiseError struct {
	Run, Setting string
	// AtLeast is the value that lets the run continue.
	AtLeast float64
}

// Error names a sufficient value.
func (e *RaiseError) Error() string {
	return "run " + e.Run + " would park again at once: " + e.Setting + " must be at least " +
		strconv.FormatFloat(e.AtLeast, 'f', -1, 64) + " for the run to continue, or none"
}
