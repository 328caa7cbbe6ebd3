// Package engine is the local driver: it takes a run's lease, performs the
// actions of the run's machine, journals the results, and publishes them. It
// decides nothing itself.
//
// The order is fixed. An intent is on disk before its effect begins, and an
// event is on disk before it is published. If a crash leaves an intent without a
// settlement, the machine decides by the call's declared effect class.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Options are the seams of an engine. The zero values are right outside tests.
type Options struct {
	// Now is the clock that stamps events; nil means time.Now.
	Now func() time.Time
	// NewID returns a new run id; nil means random ones.
	NewID func() string
	// NewNonce returns a nonce for a fence; nil means random ones.
	NewNonce func() string
	// Owner names this process in leases. Empty means [holder.Process], with a key
	// to which other processes can seal commands ([Engine.Deliver]).
	Owner string
	// Common is what the engine shares with other engines of this process on the
	// same store; nil means nothing.
	Common *Common
	// LeaseTTL is how long a run stays reserved for a process that does not renew
	// its lease; 0 means 15 s. The lease is renewed every third of that. All
	// processes on a journal use the same value.
	LeaseTTL time.Duration
	// Placement decides which process may drive a run; nil means [holder.Local].
	Placement holder.Placement
	// Admission decides whether a model call may be paid which the limits of its own
	// tree admit; nil admits all.
	Admission perform.Admission
	// Observers wrap every model and tool call, the first outermost.
	Observers []perform.Observer
	// Secrets are removed from everything that is journalled, in all runs; nil means
	// none.
	Secrets *secret.Redactor
	// Served reports whether the engine belongs to a server. The next server
	// continues what a server leaves when it stops, so the runs' events record it.
	Served bool
}

// Engine drives runs on one journal. It is safe for concurrent use.
type Engine struct {
	store    journal.Store
	follower *follow.Follower
	machines func(version string) (machine.Machine, error)
	opts     Options
	// observed reports whether an observer wants the events of runs.
	observed bool
	inboxKey holder.Key
	// snapshots are the states of the runs that were read last.
	snapshots drive.Snapshots
	keeper    *drive.Keeper

	mu sync.Mutex
	// claims are the runs whose lease this engine holds or is about to take. A lease
	// does not protect a process from itself.
	claims  map[string]bool
	drivers map[string]*driver
}

// Common is what the engines of one process share on a store: the owner's name
// in leases, the key for sealed commands, and the one reader of the journal's
// end. It is safe for concurrent use.
type Common struct {
	owner    string
	key      holder.Key
	follower *follow.Follower
}

// NewCommon returns the Common for a store. All stores in the memory of this
// process have the same owner and key.
func NewCommon(store journal.Store, inMemory bool) *Common {
	c := &Common{follower: follow.New(store)}
	if inMemory {
		c.owner, c.key = holder.Own()
	} else {
		c.owner, c.key = holder.New()
	}
	return c
}

// New returns an engine on a store. machines returns a new machine of the
// version that a run's first event names.
func New(store journal.Store, machines func(version string) (machine.Machine, error), o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = NewID
	}
	if o.NewNonce == nil {
		o.NewNonce = func() string { return strings.ToLower(rand.Text()[:16]) } // 80 random bits
	}
	common := o.Common
	switch {
	case common == nil && o.Owner == "":
		common = NewCommon(store, false)
	case common == nil:
		common = &Common{owner: o.Owner, follower: follow.New(store)}
	}
	o.Owner = common.owner
	if o.LeaseTTL == 0 {
		o.LeaseTTL = 15 * time.Second
	}
	if o.Placement == nil {
		o.Placement = holder.NewLocal(store, o.Owner, o.LeaseTTL, o.Now)
	}
	return &Engine{
		store: store, follower: common.follower, machines: machines, opts: o, inboxKey: common.key, observed: o.observed(),
		snapshots: drive.Past{Store: store, Machines: machines}.Snapshots(), keeper: drive.NewKeeper(store),
		claims: map[string]bool{}, drivers: map[string]*driver{},
	}
}

// NewID returns a random run id: 12 letters and digits, the first a letter, so
// that a short prefix is usually enough to name a run.
func NewID() string {
	text := rand.Text()
	id := make([]byte, 0, 12)
	id = append(id, "abcdefghijklmnopqrstuvwxyz"[int(text[0])%26])
	for i := 1; i < 12; i++ {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		id = append(id, c)
	}
	return string(id)
}

// Close interrupts the runs that this engine drives, so that they park, and
// waits until it drives none. The journal stays open.
func (e *Engine) Close() error {
	e.mu.Lock()
	driven := slices.Collect(maps.Values(e.drivers))
	e.mu.Unlock()
	for _, d := range driven {
		d.life.interrupt(ErrInterrupted)
	}
	for _, d := range driven {
		<-d.result.done
	}
	e.keeper.Wait()
	return nil
}

// Start creates a run and drives it. Cancelling ctx cancels the run, unless its
// cause is [ErrInterrupted], which parks it. If ctx has ended already, Start
// creates nothing.
func (e *Engine) Start(ctx context.Context, started event.RunStarted, env perform.Env) (*Run, error) {
	return e.StartAs(ctx, e.opts.NewID(), started, env)
}

// StartAs is [Engine.Start] with a given run id. The error wraps
// [journal.ErrExists] if the run exists.
func (e *Engine) StartAs(ctx context.Context, id string, started event.RunStarted, env perform.Env) (*Run, error) {
	return driven(e.start(ctx, id, started, nil, env))
}

// driven starts the goroutine that drives a run, unless there is an error.
func driven(r *Run, err error) (*Run, error) {
	if err == nil {
		go r.driver.drive()
	}
	return r, err
}

// start creates a run with an id. The caller drives it. above are the children
// of its parent, nil for none.
func (e *Engine) start(ctx context.Context, id string, started event.RunStarted, above *children, env perform.Env) (*Run, error) {
	parent := ""
	if above != nil {
		parent = above.run.id
	}
	d, err := e.create(ctx, id, started, parent, env, false)
	if err != nil {
		return nil, errors.Join(err, env.Release())
	}
	d.attach(above)
	if above != nil {
		d.log.lease.parent = above.log.lease.right
	}
	return e.ready(ctx, d), nil
}

// Create makes a run with an id without driving it: its first event is journalled and
// its lease is free. secrets are those of the run, as in [perform.Env].
func (e *Engine) Create(ctx context.Context, id string, started event.RunStarted, secrets *secret.Redactor) error {
	d, err := e.create(ctx, id, started, "", perform.Env{Secrets: secrets}, false)
	if err != nil {
		return err
	}
	defer e.unclaim(id)
	if err := e.store.Release(context.WithoutCancel(ctx), d.log.lease.held); err != nil {
		return fmt.Errorf("engine: create run %s: %w", id, err)
	}
	return nil
}

// Queue makes a run with an id, in the state [journal.Queued], for another process to
// drive. secrets are those of the run, as in [perform.Env].
func (e *Engine) Queue(ctx context.Context, id string, started event.RunStarted, secrets *secret.Redactor) error {
	_, err := e.create(ctx, id, started, "", perform.Env{Secrets: secrets}, true)
	if err == nil {
		e.unclaim(id)
	}
	return err
}

// create journals the run's first event under a new lease, which it releases at once if
// the run is queued.
func (e *Engine) create(ctx context.Context, id string, started event.RunStarted, parent string, env perform.Env, queued bool) (*driver, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("engine: create run: %w", context.Cause(ctx))
	}
	m, err := e.machines(started.Machine)
	if err != nil {
		return nil, fmt.Errorf("engine: create run: %w", err)
	}
	d := e.newDriver(m, env, id, parent)
	if e.opts.traced() && parent == "" && started.Trace.ID == "" {
		started.Trace = event.NewTrace(id)
	}
	started.Served = e.opts.Served
	d.run.begin(started)
	started.Root, started.Parent, started.Step, started.Depth = d.run.root, parent, d.run.step, d.run.depth
	if started.Fence != nil && started.Fence.Nonce == "" {
		started.Fence = &event.Fence{Nonce: e.opts.NewNonce()}
	}
	started.Secrets = e.secretNames(ctx, d)
	first, err := d.env.Record.Blobs.Begin(ctx, started)
	if err != nil {
		return nil, fmt.Errorf("engine: create run: %w", err)
	}
	if err := d.stage(first); err != nil {
		return nil, fmt.Errorf("engine: create run: %w", err)
	}
	d.run.birth = d.log.last
	if err := e.claim(d.run.id); err != nil {
		return nil, err
	}
	d.log.lease.take(d.log.lease.fresh(d.run.id, e.opts.Owner), time.Now())
	d.log.lease.unmade, d.log.lease.queued = true, queued
	if parent != "" {
		return d, nil // the parent has the intent, so it starts the child again after a crash
	}
	if err := d.commit(ctx); err != nil {
		e.unclaim(d.run.id)
		return nil, err
	}
	return d, nil
}

// Place lets decide change the row of a run that is not driven, as [drive.Amend] describes it.
func (e *Engine) Place(ctx context.Context, run string, decide drive.Amendment) error {
	if err := e.claim(run); err != nil {
		return err
	}
	defer e.unclaim(run)
	lease, err := e.opts.Placement.Take(ctx, run)
	if err == nil {
		err = drive.Amend(ctx, e.store, lease, e.opts.LeaseTTL, e.opts.Now, decide)
	}
	if err != nil {
		return fmt.Errorf("engine: place run %s: %w", run, err)
	}
	return nil
}

// Owner names this process in leases.
func (e *Engine) Owner() string { return e.opts.Owner }

// Drives reports whether the holder of a run's lease may still drive the run.
func (e *Engine) Drives(r journal.Run) bool { return e.opts.Placement.Drives(r) }

// Past returns a reader of what the runs of the store did.
func (e *Engine) Past() drive.Past { return drive.Past{Store: e.store, Machines: e.machines} }

// Inspect folds a run's journal without taking its lease, for display.
func (e *Engine) Inspect(ctx context.Context, run string) (machine.Machine, error) {
	m, err := e.Past().Fold(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("engine: load run %s: %w", run, err)
	}
	return m, nil
}

// State returns the state of a run after its last commit. That of a run that this engine
// drives is usually at hand; of another run it folds the events that are new since it was
// last called for the run.
func (e *Engine) State(ctx context.Context, run string) (drive.RunState, error) {
	e.mu.Lock()
	d := e.drivers[run]
	e.mu.Unlock()
	if s, known := d.committed(); known {
		return s, nil
	}
	s, err := e.snapshots.State(ctx, run)
	if err != nil {
		return s, fmt.Errorf("engine: load run %s: %w", run, err)
	}
	return s, nil
}

// ready registers a run that is to be driven until ctx ends.
func (e *Engine) ready(ctx context.Context, d *driver) *Run {
	if len(d.env.Children) > 0 {
		d.budget.requests = &childRequests{came: make(chan struct{}, 1)}
	}
	d.life.ctx, d.life.interrupt = context.WithCancelCause(ctx)
	d.env.Place = d.run.place()
	d.env.Deltas.Open(e.follower.Source(d.run.root))
	e.register(d)
	if d.env.Began != nil {
		d.env.Began(d.run.id)
	}
	return &Run{ID: d.run.id, engine: e, driver: d, begun: d.log.seq}
}

func (e *Engine) claim(run string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claims[run] {
		return fmt.Errorf("engine: take run %s: %w", run, &journal.HeldError{
			Run: run, Owner: e.opts.Owner, Expiry: e.opts.Now().Add(e.opts.LeaseTTL),
		})
	}
	e.claims[run] = true
	return nil
}

func (e *Engine) unclaim(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.claims, run)
}

// register adds a driver, so that commands of this process wake it.
func (e *Engine) register(d *driver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drivers[d.run.id] = d
}

func (e *Engine) unregister(d *driver) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.drivers, d.run.id)
	delete(e.claims, d.run.id)
}

// observed reports whether an observer wants the events of runs.
func (o *Options) observed() bool {
	return slices.ContainsFunc(o.Observers, func(o perform.Observer) bool { return o.Run != nil })
}

// traced reports whether new runs have a trace.
func (o *Options) traced() bool {
	return slices.ContainsFunc(o.Observers, func(o perform.Observer) bool { return o.Traces })
}
