package engine

import (
	"context"
	"sync/atomic"

	"github.com/pawlrun/pawl/event"
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
