package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// driver drives one run. All of it but the effects runs on one goroutine.
type driver struct {
	engine  *Engine
	store   journal.Store
	machine machine.Machine
	env     Env
	hub     *hub
	now     func() time.Time

	run, parent, kind, name string

	memo  *llm.Memo
	lease journal.Lease
	seq   int64
	head  string
	cycle int

	staged   []staged
	consumed []int64
	blobs    []journal.Blob
	effects  []func(context.Context)

	// flights are the effects under way, by action; settled brings their
	// results back to the driver's goroutine.
	flights map[string]context.CancelFunc
	settled chan settlement
	inbox   chan struct{}
	seen    map[int64]bool
	wakeAt  time.Time

	interrupt chan struct{}
	stopping  bool
	cancelled bool

	done chan struct{}
	err  error
}

// staged is an event that is applied and not yet on disk.
type staged struct {
	event event.Event
	body  []byte
}

// settlement is what became of an effect.
type settlement struct {
	flight string
	data   []event.Data
}

func (e *Engine) newDriver(m machine.Machine, env Env, run, parent string) *driver {
	return &driver{
		engine: e, store: e.store, machine: m, env: env, hub: newHub(), now: e.opts.Now,
		run: run, parent: parent, memo: new(llm.Memo),
		flights: map[string]context.CancelFunc{}, settled: make(chan settlement, 16),
		inbox: make(chan struct{}, 1), seen: map[int64]bool{},
		interrupt: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// create journals the run's first event under a fresh lease.
func (d *driver) create(ctx context.Context, started event.RunStarted) error {
	d.kind, d.name = started.Kind, started.Name
	now := d.now()
	if err := d.stage(started); err != nil {
		return err
	}
	b := d.batch(now)
	b.Lease = journal.Lease{Run: d.run, Owner: d.engine.opts.Owner, Expiry: now.Add(d.engine.opts.LeaseTTL)}
	lease, pos, err := d.store.Create(ctx, journal.Run{
		ID: d.run, Parent: d.parent, Kind: d.kind, Name: d.name, Created: now,
	}, b)
	if err != nil {
		return fmt.Errorf("engine: create run: %w", err)
	}
	d.lease = lease
	d.publish(pos)
	return nil
}

// drive goes on until the run has ended or parked. Its error is the engine's
// own failure; a failed run is an outcome.
func (d *driver) drive(ctx context.Context) (err error) {
	// The context of effects outlives a cancel of ctx: a cancelled run still
	// settles its calls and journals its end.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		stop()
		if p := recover(); p != nil {
			err = d.panicked(work, p)
		}
		d.cancelFlights()
		d.releaseLease(work)
		d.hub.close()
		if d.env.Close != nil {
			err = errors.Join(err, d.env.Close())
		}
	}()
	heartbeat := time.NewTicker(d.engine.opts.LeaseTTL / 3)
	defer heartbeat.Stop()
	if err := d.takeCommands(work); err != nil {
		return err
	}
	for {
		if err := d.advance(work); err != nil {
			return err
		}
		if d.finished() {
			return nil
		}
		if err := d.wait(ctx, work, heartbeat.C); err != nil {
			return err
		}
	}
}

// finished says that nothing is left to do here: the run ended, or it parked
// and its last effect has settled.
func (d *driver) finished() bool {
	s := d.machine.State()
	return s.Phase == machine.Ended || s.Phase == machine.Parked && len(d.flights) == 0
}

// advance performs everything that is due: it journals decisions and intents
// until the machine has none left, commits them, and starts the effects.
func (d *driver) advance(work context.Context) error {
	for {
		progress, err := d.decide(work)
		if err != nil {
			return err
		}
		if !progress {
			break
		}
	}
	if err := d.commit(work); err != nil {
		return err
	}
	for _, start := range d.effects {
		start(work)
	}
	d.effects = d.effects[:0]
	return nil
}

func (d *driver) decide(work context.Context) (bool, error) {
	if d.stopping {
		return d.parkInterrupted()
	}
	progress := false
	d.wakeAt = time.Time{}
	var asks []machine.Ask
	for _, a := range d.machine.Next() {
		var err error
		changed := true
		switch a := a.(type) {
		case machine.Record:
			err = d.stage(a.Data)
		case machine.Resolve:
			err = d.stage(d.env.Tools.Resolve(a.CallID, a.Call))
		case machine.CallModel:
			changed, err = d.beginModel(a)
		case machine.RunTool:
			err = d.beginTool(a)
		case machine.Ask:
			asks = append(asks, a)
			changed = false
		}
		if err != nil {
			return false, err
		}
		progress = progress || changed
	}
	if len(asks) > 0 {
		asked, err := d.beginAsk(asks)
		return progress || asked, err
	}
	return progress, nil
}

// parkInterrupted parks once everything in flight has been stopped.
func (d *driver) parkInterrupted() (bool, error) {
	if len(d.flights) > 0 || d.machine.State().Phase != machine.Running {
		return false, nil
	}
	return false, d.stage(event.RunParked{Reason: event.ParkInterrupted})
}

// stage applies an event and queues it for the next commit. Nothing that
// follows from it may leave the process before that.
func (d *driver) stage(data event.Data) error {
	switch x := data.(type) {
	case event.CycleStart:
		d.cycle = x.Cycle
	case event.RunTerminatedBy, event.RunCompleted:
		d.cycle = 0
	}
	d.staged = append(d.staged, staged{event: event.Event{
		Seq: d.seq + 1, Run: d.run, Parent: d.parent, Time: d.now().UTC().Truncate(time.Microsecond),
		Cycle: d.cycle, Data: data, Prev: d.head,
	}})
	s := &d.staged[len(d.staged)-1]
	body, err := event.Encode(&s.event)
	if err != nil {
		return err
	}
	s.body = body
	if err := d.machine.Apply(&s.event); err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	d.seq, d.head = s.event.Seq, event.Hash(body)
	return nil
}

func (d *driver) batch(now time.Time) journal.Batch {
	b := journal.Batch{Lease: d.lease, Head: d.head, Consumed: d.consumed, Blobs: d.blobs, Status: d.status(), Time: now}
	b.Records = make([]journal.Record, len(d.staged))
	for i, s := range d.staged {
		b.Records[i] = journal.Record{Run: d.run, Seq: s.event.Seq, Type: string(s.event.Type()), Body: s.body}
	}
	return b
}

func (d *driver) status() journal.Status {
	s := d.machine.State()
	st := journal.Status{State: journal.Running, Cycles: s.Cycle}
	switch {
	case s.Phase == machine.Ended:
		st.State = journal.Ended
		st.Detail = string(s.Outcome.Reason)
		st.Outcome, _ = json.Marshal(s.Outcome)
	case s.Parked != nil && s.Parked.Reason == event.ParkPaused:
		st.State, st.Detail = journal.Paused, string(s.Parked.Reason)
	case s.Parked != nil:
		st.State, st.Detail = journal.Parked, string(s.Parked.Reason)
	}
	return st
}

// commit writes what is staged and then publishes it.
func (d *driver) commit(ctx context.Context) error {
	if len(d.staged) == 0 {
		return nil
	}
	pos, err := d.store.Append(ctx, d.batch(d.now()))
	if err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	d.publish(pos)
	return nil
}

func (d *driver) publish(pos int64) {
	for i := range d.staged {
		d.staged[i].event.Pos = pos + int64(i)
		d.hub.publish(d.staged[i].event)
	}
	clear(d.staged)
	d.staged, d.consumed, d.blobs = d.staged[:0], nil, nil
}

// wait blocks until something happened that the machine should know of.
func (d *driver) wait(ctx, work context.Context, heartbeat <-chan time.Time) error {
	var timer <-chan time.Time
	if !d.wakeAt.IsZero() {
		t := time.NewTimer(d.wakeAt.Sub(d.now()))
		defer t.Stop()
		timer = t.C
	}
	cancelled := ctx.Done()
	if d.stopping || d.cancelled {
		cancelled = nil
	}
	select {
	case s := <-d.settled:
		return d.settle(s)
	case <-d.inbox:
		return d.takeCommands(work)
	case <-cancelled:
		return d.contextEnded(ctx)
	case <-d.interrupt:
		d.stopping = true
		d.cancelFlights()
	case <-timer:
	case <-heartbeat:
		return d.renew(work)
	}
	return nil
}

// settle journals the results of an effect, and of all others that came in
// meanwhile, so that they share a commit.
func (d *driver) settle(s settlement) error {
	for {
		delete(d.flights, s.flight)
		for _, data := range s.data {
			if err := d.stage(data); err != nil {
				return err
			}
		}
		select {
		case s = <-d.settled:
		default:
			return nil
		}
	}
}

// ErrInterrupted, as the cause of a context that ends, parks the run instead
// of cancelling it.
var ErrInterrupted = errors.New("engine: interrupted")

func (d *driver) contextEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrInterrupted) {
		d.stopping = true
		d.cancelFlights()
		return nil
	}
	d.cancelFlights()
	d.cancelled = true
	return d.stage(event.CancelRequested{By: d.engine.opts.Owner, Reason: context.Cause(ctx).Error()})
}

func (d *driver) cancelFlights() {
	for _, cancel := range d.flights {
		cancel()
	}
}

func (d *driver) renew(ctx context.Context) error {
	lease, err := d.store.Renew(ctx, d.lease, d.engine.opts.LeaseTTL)
	if err != nil {
		return fmt.Errorf("engine: run %s: %w", d.run, err)
	}
	d.lease = lease
	return nil
}

// releaseLease lets others take the run up; a lease that was lost is not ours
// to give. The time limit keeps a stuck journal from holding the process.
func (d *driver) releaseLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = d.store.Release(ctx, d.lease)
}

// panicked ends the run with reason internal. A panic is a defect of ours, and
// the run must still have its one terminal event.
func (d *driver) panicked(ctx context.Context, p any) error {
	err := fmt.Errorf("engine: run %s: panic: %v\n%s", d.run, p, debug.Stack())
	ctx = context.WithoutCancel(ctx)
	s := d.machine.State()
	failure := &event.Failure{Class: "internal", Message: fmt.Sprint(p)}
	d.staged = d.staged[:0]
	row, rerr := d.store.Run(ctx, d.run)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	d.seq, d.head = row.Seq, row.Head
	outcome := event.Outcome{
		Status: event.StatusFailed, Reason: event.ReasonInternal, Error: failure, Cycles: s.Cycle,
		Usage: s.Usage, Cost: &s.Cost,
		NextSafeAction: "This is a defect of Pawl; the run's events up to here are kept. Please report it.",
	}
	for _, data := range []event.Data{
		event.RunTerminatedBy{Reason: event.ReasonInternal, Error: failure}, event.RunCompleted{Outcome: outcome},
	} {
		ev := event.Event{Seq: d.seq + 1, Run: d.run, Parent: d.parent, Time: d.now().UTC().Truncate(time.Microsecond), Data: data, Prev: d.head}
		body, encErr := event.Encode(&ev)
		if encErr != nil {
			return errors.Join(err, encErr)
		}
		d.staged = append(d.staged, staged{event: ev, body: body})
		d.seq, d.head = ev.Seq, event.Hash(body)
	}
	b := d.batch(d.now())
	b.Status = journal.Status{State: journal.Ended, Detail: string(event.ReasonInternal), Cycles: s.Cycle}
	b.Status.Outcome, _ = json.Marshal(outcome)
	pos, appendErr := d.store.Append(ctx, b)
	if appendErr != nil {
		return errors.Join(err, appendErr)
	}
	d.publish(pos)
	return err
}
