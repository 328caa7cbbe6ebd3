package engine

import (
	"context"
	"sync/atomic"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// inbox has what a run is told from outside.
type inbox struct {
	store journal.Store
	run   string
	wake  *driverLock
	// commanded says that commands came which nobody has taken up. Those of this engine
	// wake the driver's goroutine at once, and sent does for all that the store tells of,
	// these as well.
	commanded atomic.Bool
	sent      <-chan struct{}
	// raisedAbove says that a limit of a run above was changed.
	raisedAbove atomic.Bool
	// seen are the commands that were taken.
	seen map[int64]bool
	// given is the first cycle whose messages of the environment ([Env.Inputs])
	// have not been journalled.
	given int
}

// came says that a command is there. It is safe for concurrent use.
func (b *inbox) came() {
	b.commanded.Store(true)
	b.wake.notify()
}

// raised says that a run above may have more room. It is safe for concurrent use.
func (b *inbox) raised() {
	b.raisedAbove.Store(true)
	b.came()
}

// take takes the commands that were not taken before, oldest first.
func (b *inbox) take(ctx context.Context) ([]journal.Command, error) {
	all, err := b.store.Inbox(ctx, b.run)
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
func (d *driver) takeCommands(ctx context.Context) error {
	d.inbox.commanded.Store(false)
	if d.inbox.raisedAbove.Swap(false) {
		d.limitChanged()
	}
	if err := d.takeMail(); err != nil {
		return err
	}
	if d.log.lease.unmade {
		return nil // nobody could send it any
	}
	news, err := d.inbox.take(ctx)
	if err != nil {
		return d.log.failed(err)
	}
	known := d.knownSecrets()
	for _, c := range news {
		d.log.consumed = append(d.log.consumed, c.ID)
		if err := d.takeCommand(c, known); err != nil {
			return err
		}
	}
	return d.wakeChildren(ctx)
}

// takeCommand journals what a command becomes.
func (d *driver) takeCommand(c journal.Command, known knownSecrets) error {
	c, readable := d.engine.letters.open(c)
	if !readable {
		return nil
	}
	c, _ = known.clean(c)
	if c.Kind == journal.Cancel {
		return d.cancel(event.CancelRequested{By: c.By, Reason: c.Text, Principal: c.Principal})
	}
	data := d.env.translate(c, d.machine)
	if data == nil {
		return nil
	}
	if data.EventType() == event.TypeBudgetRaised {
		d.limitChanged()
	}
	return d.stage(data)
}

// overrule drops the pauses that were sent before somebody resumed the run, who
// has decided otherwise.
func (d *driver) overrule(sent []journal.Command) {
	for _, c := range sent {
		if c.Kind == journal.Pause {
			d.inbox.seen[c.ID] = true
			d.log.consumed = append(d.log.consumed, c.ID)
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
