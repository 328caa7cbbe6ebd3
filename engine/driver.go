package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/drive"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
)

// driver drives one run. Whoever has the lock may touch what it knows; its
// effects do not. Its parts are in files of their own.
type driver struct {
	core
	lock  driverLock
	inbox inbox
	calls calls
	// questions are those to a person, and children the runs below this one, with what
	// they draw from its budget and the messages that lie ready for them.
	questions questions
	children  children
	budget    childBudget
	mail      mail
	above     parentRun
	result    result
}

func (e *Engine) newDriver(m machine.Machine, env Env, run, parent string) *driver {
	d := &driver{
		core: core{
			engine: e, machine: m, run: identity{id: run, parent: parent, root: run, depth: 1},
			effects: effects{pending: map[string]*pendingEffect{}, workers: newWorkers()}, life: lifetime{interrupt: make(chan struct{}, 1)},
		},
		lock: newDriverLock(), questions: questions{asked: map[string]machine.Unanswered{}}, result: result{done: make(chan struct{})},
	}
	d.calls = calls{core: &d.core, above: &d.above}
	d.questions.core = &d.core
	d.children.core, d.children.budget = &d.core, &d.budget
	d.budget.core, d.budget.children, d.budget.mail, d.budget.above = &d.core, &d.children, &d.mail, &d.above
	d.mail.core, d.above.core = &d.core, &d.core
	d.inbox.core, d.inbox.children, d.inbox.above = &d.core, &d.children, &d.above
	d.inbox.wake, d.inbox.seen = &d.lock, map[int64]bool{}
	d.effects.lock, d.effects.carryOn = &d.lock, d.carryOn
	c := newClock(e.opts.Now)
	d.env.run, d.env.record, d.env.clock = &d.run, drive.NewRecorder(e.store), c
	d.env.live.run, d.env.live.now = &d.run, c.now
	d.env.observers, d.env.secrets = e.opts.Observers, e.opts.Secrets
	d.env.equip(env)
	d.log.store, d.log.env, d.log.follower, d.log.watched = e.store, &d.env, e.follower, e.observed
	d.log.lease.store, d.log.lease.lasts, d.log.lease.now = e.store, e.opts.LeaseTTL, e.opts.Now
	return d
}

// drive goes on until the run has ended or parked. It leaves properly also where the
// goroutine is ended.
func (d *driver) drive() {
	work, stop := context.WithCancel(context.WithoutCancel(d.life.ctx))
	d.life.work, d.inbox.sent = work, d.log.store.WatchInbox(work, d.run.id)
	defer func() {
		err := d.leave(work)
		stop()
		d.finish(err)
	}()
	d.loop()
}

// leave settles what is under way and gives the run up.
func (d *driver) leave(work context.Context) error {
	err := d.lock.failure
	_, store := errors.AsType[*storeError](err)
	d.life.broken = err != nil && !store
	late := d.effects.finish()
	if d.life.broken {
		err = d.endInternal(work, err, late)
	} else {
		d.result.final = d.machine.State()
	}
	d.log.lease.release(work)
	return err
}

// loop goes on until the run has ended or parked, or cannot go on. It leaves with
// the lock.
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

// takeFirst takes up what came before the driver did.
func (d *driver) takeFirst(work context.Context) error {
	if err := d.inbox.takeCommands(work); err != nil {
		return err
	}
	return d.calls.giveInputs(0)
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
	d.above.tellWaiting()
	if len(d.effects.queue) > 0 {
		d.moveDeadlines()
		d.effects.start(work)
	}
	return nil
}

// mostStaged bounds what a machine may decide without an effect: one that never
// stops deciding is broken, and must not fill the memory. Each call of an answer
// takes a few decisions, however many a model makes, and so does each child
// and each effect that has ended.
func (d *driver) mostStaged() int {
	return 20_000 + 20*(len(d.log.calls.calls)+len(d.children.active)+d.effects.ended)
}

// decide performs the actions that are due now and says whether more may be
// due because of them.
func (d *driver) decide(work context.Context) (bool, error) {
	if len(d.log.staged) > d.mostStaged() {
		return false, fmt.Errorf("engine: run %s: the machine decided %d times without an effect", d.run.id, len(d.log.staged))
	}
	d.alarm = alarm{}
	if d.life.interrupted && !d.life.cancelled {
		if progress, err := d.keepAnswer(); progress || err != nil {
			return progress, err
		}
		return false, d.parkInterrupted()
	}
	progress := false
	var ask *machine.Ask
	for _, a := range d.machine.Next() {
		var err error
		changed := true
		switch a := a.(type) {
		case machine.Record:
			err = d.stage(a.Data)
		case machine.Resolve:
			err = d.stage(d.env.resolve(a))
		case machine.CheckAnswer:
			err = d.stage(checkAnswer(a))
		case machine.CallModel:
			changed, err = d.calls.beginModel(&a)
		case machine.RunTool:
			changed, err = d.calls.beginTool(a)
		case machine.RunCommand:
			changed, err = d.calls.beginCommand(a)
		case machine.StartChild:
			changed, err = d.children.begin(work, a)
		case machine.Deliver:
			d.mail.handOver(a)
			changed = false
		case machine.CancelChild:
			d.children.cancelChild(a)
			changed = false
		case machine.Reserve:
			err = d.above.reserve(a)
			changed = false
		case machine.Wait:
			changed, err = d.calls.wait(a)
		case machine.Evaluate:
			err = d.stage(d.env.evaluate(d.life.work, a))
		case machine.Observe:
			err = d.stage(d.env.observe(d.life.work, a))
		case machine.RunHook:
			d.calls.beginHook(a)
			changed = false
		case machine.Ask:
			ask = &a
			changed = false
		default:
			err = fmt.Errorf("engine: run %s: the machine asks for %T, which this driver cannot do", d.run.id, a)
		}
		if err != nil {
			return false, err
		}
		progress = progress || changed
	}
	if ask != nil {
		asked, err := d.questions.begin(*ask)
		return progress || asked, err
	}
	return progress, nil
}

// keepAnswer journals the calls of an answer that came while the run is stopped: only a
// call's own event has its arguments, so without it they would be lost.
func (d *driver) keepAnswer() (progress bool, err error) {
	for _, a := range d.machine.Next() {
		r, is := a.(machine.Record)
		if !is {
			continue
		}
		switch r.Data.(type) {
		case event.BudgetCommitted, event.ToolCall:
			if err := d.stage(r.Data); err != nil {
				return progress, err
			}
			progress = true
		}
	}
	return progress, nil
}

// parkInterrupted parks once every effect has been stopped.
func (d *driver) parkInterrupted() error {
	if len(d.effects.pending) > 0 || d.machine.State().Phase != machine.Running {
		return nil
	}
	return d.stage(event.RunParked{Reason: event.ParkInterrupted, Served: d.engine.opts.Served})
}

// wait gives the lock up until something comes that the machine should know of,
// and returns how that is taken up.
func (d *driver) wait(heartbeat <-chan time.Time) (take func(work context.Context) error) {
	timer, stop := d.alarm.timer(d.env.clock.now)
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
	case <-d.life.interrupt:
		return d.stopForNow
	case <-timer:
	case <-heartbeat:
		return d.beat
	}
	return d.takeNews
}

// takeNews takes up what has come. What this process told the run before an
// effect ended comes before that: whoever asks for a pause while a call runs
// means the end of its cycle, and not of the next one.
func (d *driver) takeNews(work context.Context) error {
	if d.inbox.commanded.Load() {
		if err := d.inbox.takeCommands(work); err != nil {
			return err
		}
	}
	return d.settle(work)
}

// stopForNow parks the run once its effects have stopped.
func (d *driver) stopForNow(context.Context) error {
	d.life.interrupted = true
	d.effects.cancelPending()
	return nil
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
			if broken == nil {
				continue
			}
			if err := d.stage(*broken); err != nil {
				return err
			}
		}
	}
	if !settled {
		return nil
	}
	return d.children.wake(work)
}

// overtaken reports whether an answer comes too late: the call has been decided
// from elsewhere, or the run does not wait any more.
func (d *driver) overtaken(data event.Data) bool {
	switch x := data.(type) {
	case event.Resolving:
		return pending(d.machine.State(), x.Resolution().ID) == nil
	case event.BudgetReserved, event.BudgetRefused:
		return d.machine.State().Phase != machine.Running
	case event.RunParked:
		return d.life.leaving() || d.machine.State().Phase != machine.Running
	}
	return false
}

// contextEnded takes up why the caller's context ended, once.
func (d *driver) contextEnded(cause error) error {
	switch {
	case d.life.leaving():
		return nil
	case errors.Is(cause, ErrInterrupted):
		return d.stopForNow(d.life.work)
	}
	return d.cancel(event.CancelRequested{By: d.engine.opts.Owner, Reason: cause.Error()})
}

var errEndedClosing = errors.New("engine: what closes the run's environment ended its goroutine (runtime.Goexit)")

// closeEnv releases the run's environment once no effect uses it any more.
func (d *driver) closeEnv() error {
	if d.env.Close == nil {
		return nil
	}
	return d.effects.closing(d.env.close)
}

// beat keeps the lease and, should a wake-up have been lost, the inbox.
func (d *driver) beat(ctx context.Context) error {
	err := d.log.lease.renew(ctx)
	if errors.Is(err, journal.ErrStale) || errors.Is(err, journal.ErrNotFound) || err != nil && d.log.lease.over() {
		return d.log.failed(err)
	}
	d.children.lookAgain()
	return d.inbox.takeCommands(ctx)
}

// keepLease comes between a commit and the effects that wait for it. A disk
// may have held the commit up for longer than the lease lasted; whoever has
// taken the run over since then has decided what becomes of the intents, so
// nothing starts unless the lease is still ours.
func (d *driver) keepLease(ctx context.Context) error {
	if len(d.effects.queue) == 0 || !d.log.lease.over() {
		return nil
	}
	if err := d.log.lease.renew(ctx); err != nil {
		return d.log.failed(err)
	}
	return nil
}
