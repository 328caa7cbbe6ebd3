package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// driver drives one run. Its state belongs to the holder of the lock; effects
// run without the lock. Its parts are in files of their own. To follow a run,
// read this file, decide.go, event_log.go and effects.go.
type driver struct {
	core
	lock  driverLock
	inbox inbox
	calls calls
	// questions are those to a person. children are the runs below this one, with
	// what they draw from its budget and the messages that are ready for them.
	questions questions
	children  children
	budget    childBudget
	mail      mail
	above     parentRun
	result    result
}

// core is what all parts of a driver share: they stage events for the next
// commit, and start effects after it.
type core struct {
	engine  *Engine
	machine machine.Machine
	run     identity
	env     perform.Performer
	log     eventLog
	effects effects
	alarm   alarm
	life    lifetime
}

// newDriver makes the driver of a run and connects its parts.
func (e *Engine) newDriver(m machine.Machine, env perform.Env, run, parent string) *driver {
	d := &driver{
		core: core{
			engine: e, machine: m, run: identity{id: run, parent: parent, root: run, depth: 1},
			effects: effects{pending: map[string]*pendingEffect{}, workers: perform.NewWorkers()},
		},
		lock: newDriverLock(), questions: questions{asked: map[string]machine.Unanswered{}}, result: result{done: make(chan struct{})},
	}
	d.life.parking, d.life.park = context.WithCancel(context.Background())
	d.calls = calls{core: &d.core, above: &d.above, children: &d.children}
	d.questions.core = &d.core
	d.children.core, d.children.budget = &d.core, &d.budget
	d.budget.core, d.budget.children, d.budget.mail, d.budget.above = &d.core, &d.children, &d.mail, &d.above
	d.mail.core, d.above.core = &d.core, &d.core
	d.inbox.core, d.inbox.children, d.inbox.above = &d.core, &d.children, &d.above
	d.inbox.wake, d.inbox.seen = &d.lock, map[int64]bool{}
	d.effects.lock, d.effects.carryOn = &d.lock, d.carryOn
	d.env.Init(e.store, e.opts.Now, perform.Shared{Observers: e.opts.Observers, Secrets: e.opts.Secrets, Admission: e.opts.Admission})
	d.env.Equip(env)
	d.log.store, d.log.run, d.log.env, d.log.follower, d.log.growth.Keeper = e.store, &d.run, &d.env, e.follower, e.keeper
	if e.observed {
		d.log.observers = e.opts.Observers
	}
	if store, may := e.store.(journal.KeepsValues); may {
		d.log.values = store.KeepsValues()
	}
	d.log.lease.store, d.log.lease.lasts, d.log.lease.now = e.store, e.opts.LeaseTTL, e.opts.Now
	return d
}

// drive runs until the run has ended or parked. It cleans up even if code of
// others ends the goroutine.
func (d *driver) drive() {
	work, stop := context.WithCancel(context.WithoutCancel(d.life.ctx))
	defer context.AfterFunc(d.life.parking, d.lock.notify)()
	d.life.work, d.inbox.sent = work, d.log.store.WatchInbox(work, d.run.id)
	defer func() {
		err := d.leave(work)
		stop()
		d.finish(err)
	}()
	d.loop()
}

// loop runs until the run has ended or parked, or cannot continue. It holds the
// lock when it returns.
func (d *driver) loop() {
	heartbeat := time.NewTicker(d.engine.opts.LeaseTTL / 3)
	defer heartbeat.Stop()
	for take := d.takeFirst; ; {
		d.step(take)
		d.effects.begin(false)
		if d.lock.over {
			return
		}
		take = d.wait(heartbeat.C)
		if d.lock.over {
			return
		}
	}
}

// takeFirst handles what arrived before the driver did.
func (d *driver) takeFirst(work context.Context) error {
	if err := d.inbox.takeCommands(work); err != nil {
		return err
	}
	return d.calls.giveInputs(0)
}

// step handles what has arrived, and performs everything that is due because of
// it.
func (d *driver) step(take func(work context.Context) error) {
	d.lock.failure = d.contained(func() error {
		if err := take(d.life.work); err != nil {
			return err
		}
		if d.life.parking.Err() != nil {
			d.startNoMore()
		}
		if err := context.Cause(d.life.ctx); err != nil {
			if err := d.contextEnded(err); err != nil {
				return err
			}
		}
		if err := d.advance(d.life.work); err != nil {
			return err
		}
		d.lock.over = d.finished()
		return nil
	})
	d.lock.over = d.lock.over || d.lock.failure != nil
}

// advance performs everything that is due: it journals decisions and intents
// until the machine has none left, commits them, and starts the effects.
func (d *driver) advance(work context.Context) error {
	for {
		progress, err := d.decide(work)
		if err == nil && !progress {
			progress, err = d.budget.answer("")
		}
		if err != nil {
			return err
		}
		if !progress {
			break
		}
	}
	d.above.dismiss()
	d.questions.dismiss()
	if !d.waits() {
		if err := d.commit(work); err != nil {
			return err
		}
	}
	if err := d.keepLease(work); err != nil {
		return err
	}
	d.budget.deliver()
	d.above.reportWaiting()
	if len(d.effects.queue) > 0 {
		d.moveDeadlines()
		d.effects.start(work)
	}
	return nil
}

// stage applies an event and queues it for the next commit. Nothing that follows
// from it may leave the process before that.
func (c *core) stage(data event.Data) error {
	s, err := c.log.seal(data)
	if err != nil {
		return err
	}
	c.log.applied = s.event
	if err := c.machine.Apply(&c.log.applied); err != nil {
		return fmt.Errorf("engine: run %s: %w", c.run.id, err)
	}
	c.log.push(s)
	switch data.(type) {
	case event.BudgetRaised, event.ToolResult, event.CommandFinished, event.BudgetCommitted, event.ChildWaiting: // a changed limit, possible progress, a pause
		if len(c.effects.pending) > 0 {
			c.moveDeadlines()
		}
	}
	return nil
}

// commit writes the staged events, removes the commands that they answer from
// the inbox, and then publishes the events. The last commit of a driver also
// releases the lease.
func (d *driver) commit(ctx context.Context) error {
	if d.log.empty() {
		return nil
	}
	if err := d.log.shareTexts(); err != nil {
		return err
	}
	b := d.log.batch(d.status())
	b.Release = d.log.lease.queued || !d.log.lease.unmade && d.finished()
	pos, err := d.log.write(ctx, b)
	if err != nil {
		return err
	}
	d.above.reportUsed()
	d.log.publish(pos)
	d.effects.ended = 0
	return nil
}

// waits reports whether a run without a journal has nothing to do but to request
// a part of its parent's budget. Its journal begins with the reply, or with the
// next renewal of its lease.
func (d *driver) waits() bool {
	return d.log.lease.unmade && d.above.reserving && len(d.effects.queue) == 1
}

// finished reports whether nothing is left to do here: the run ended, or it
// parked and its last effect has settled.
func (c *core) finished() bool {
	s := c.machine.State()
	return s.Phase == machine.Ended || s.Phase == machine.Parked && len(c.effects.pending) == 0
}

// keepLease runs between a commit and the effects that wait for it. A slow disk
// may have delayed the commit beyond the end of the lease. Another process that
// has taken the run since then has decided about the intents, so nothing starts
// unless this lease is still valid.
func (d *driver) keepLease(ctx context.Context) error {
	if len(d.effects.queue) == 0 || !d.log.lease.over() {
		return nil
	}
	if err := d.log.lease.renew(ctx); err != nil {
		return d.log.failed(err)
	}
	return nil
}

// wait releases the lock until something arrives for the machine, and returns
// the function that handles it.
func (d *driver) wait(heartbeat <-chan time.Time) (take func(work context.Context) error) {
	timer, stop := d.alarm.timer(d.env.Clock.Now)
	defer stop()
	ended := d.life.ended()
	d.lock.unlock()
	defer d.lock.lock()
	select {
	case <-d.lock.wake:
	case <-d.budget.drawn():
	case <-d.inbox.sent:
		d.inbox.commanded.Store(true)
	case <-ended:
	case <-timer:
	case <-heartbeat:
		return d.beat
	}
	return d.takeNews
}

// beat renews the lease, and reads the inbox in case a wake-up was lost.
func (d *driver) beat(ctx context.Context) error {
	err := d.log.lease.renew(ctx)
	if errors.Is(err, journal.ErrStale) || errors.Is(err, journal.ErrNotFound) || err != nil && d.log.lease.over() {
		return d.log.failed(err)
	}
	d.children.markUnread()
	return d.inbox.takeCommands(ctx)
}

// takeNews handles what has arrived. A command that this process sent before an
// effect ended comes before that effect's settlement: a pause during a call
// means the end of the call's cycle, not of the next one.
func (d *driver) takeNews(work context.Context) error {
	if d.inbox.commanded.Load() {
		if err := d.inbox.takeCommands(work); err != nil {
			return err
		}
	}
	return d.settle(work)
}

// settle journals the results of the effects that have ended, all in one commit.
func (d *driver) settle(work context.Context) error {
	settled := false
	for s, ok := d.lock.next(); ok; s, ok = d.lock.next() {
		settled = true
		d.effects.forget(s)
		d.questions.forget(s.effect)
		d.above.forget(s.effect)
		if err := d.children.settle(work, s); err != nil {
			return err
		}
		if s.then != nil {
			if err := s.then(); err != nil {
				return err
			}
		}
		for _, data := range s.data {
			if d.overtaken(data) {
				continue
			}
			broken := d.log.cache.Check(data)
			d.log.taking = data
			if err := d.stage(data); err != nil {
				return err
			}
			d.log.taking = nil
			if broken != nil {
				if err := d.stage(*broken); err != nil {
					return err
				}
			}
		}
	}
	if !settled {
		return nil
	}
	return d.children.wake(work)
}

// overtaken reports whether an answer comes too late: the call was decided from
// elsewhere, the run does not wait any more, or the journal has it already.
func (d *driver) overtaken(data event.Data) bool {
	switch x := data.(type) {
	case event.Resolving:
		return pending(d.machine.State(), x.Resolution().ID) == nil
	case event.ServerChanged:
		return d.log.servers.Known(x)
	case event.BudgetReserved, event.BudgetRefused:
		return d.machine.State().Phase != machine.Running
	case event.RunParked:
		return d.life.leaving() || d.machine.State().Phase != machine.Running
	}
	return false
}

// carryOn delivers a settlement and, if the lock is free, does what follows from
// it. It returns an effect that is due then, to be performed on the caller's
// goroutine.
func (d *driver) carryOn(s settlement) (next perform.Job) {
	d.lock.push(s)
	if !d.lock.tryLock() {
		d.lock.notify() // the holder of the lock may have checked already
		return nil
	}
	defer d.lock.unlock()
	if d.lock.over {
		d.lock.notify()
		return nil
	}
	d.step(d.takeNews)
	if d.lock.over || !d.alarm.at.IsZero() {
		d.lock.notify()
	}
	return d.effects.begin(true)
}

// contained turns a panic into an error of the run. If code of others ends the
// goroutine instead, no caller gets a result, so it marks the lock as over, and
// the run's goroutine leaves.
func (d *driver) contained(do func() error) (err error) {
	returned := false
	defer func() {
		switch p := recover(); {
		case p != nil:
			err = fmt.Errorf("engine: run %s: %w", d.run.id, &PanicError{Value: p, Stack: debug.Stack()})
		case !returned:
			d.lock.over, d.lock.failure = true, fmt.Errorf("engine: run %s: %w", d.run.id, errEnded)
			d.lock.notify()
		}
	}()
	err = do()
	returned = true
	return err
}

// errEnded fails a run whose tool or model ended the goroutine that called it.
var errEnded = errors.New("what a tool declares, or a model's adapter, ended the goroutine that drives the run (runtime.Goexit)")

// committed returns the state of the run after its last commit, if no other goroutine
// uses it now and the machine is not ahead of the journal.
func (d *driver) committed() (s drive.RunState, known bool) {
	if d == nil || !d.lock.tryLock() {
		return s, false
	}
	defer d.lock.unlock()
	if d.lock.over || !d.log.empty() {
		return s, false
	}
	return drive.StateOf(d.machine), true
}
