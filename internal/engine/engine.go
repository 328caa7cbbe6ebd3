// Package engine is the local driver: it takes a run's lease, performs the
// actions that the run's machine asks for, journals what came back, and
// publishes it. It decides nothing itself.
//
// The order is fixed. An intent is on disk before its effect begins; an event
// is on disk before anybody sees it; and what a crash leaves between intent
// and settlement is handed back to the machine, which decides by the call's
// declared effect class.
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
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm/replay"
)

// Options are the seams of an engine. The zero values are right outside tests.
type Options struct {
	// Now is the clock that stamps events; nil means time.Now.
	Now func() time.Time
	// NewID makes run ids; nil means random ones.
	NewID func() string
	// NewNonce makes the nonces of fences; nil means random ones.
	NewNonce func() string
	// Owner names this process in leases; empty means [holder.Process], with a key
	// to which others can seal commands ([Engine.Tell]).
	Owner string
	// Common is what the engine shares with the others of this process on the same
	// store; nil means that it shares nothing.
	Common *Common
	// LeaseTTL is how long a run stays reserved for a process that has gone
	// silent; 0 means 15 s. It is renewed every third of that. All who share a
	// journal have the same one.
	LeaseTTL time.Duration
	// Observers wrap every model and tool call, the first outermost.
	Observers []Observer
	// Secrets are taken out of everything that is journalled, whatever run it
	// is of; nil knows none.
	Secrets *secret.Redactor
	// Served is for the engine of a server. What the server leaves when it stops, the
	// next one continues, so the runs' events say who drove them.
	Served bool
}

// Engine drives runs on one journal. It is safe for concurrent use.
type Engine struct {
	store    journal.Store
	follower *follow.Follower
	machines func(version string) (machine.Machine, error)
	opts     Options
	// observed says that an observer wants the events of runs.
	observed bool
	letters  holder.Key

	mu sync.Mutex
	// claims are the runs whose lease this engine holds or is about to take;
	// a lease does not protect a process from itself.
	claims map[string]bool
	// silences are the leases that end too late, by their runs.
	silences map[string]silence
	drivers  map[string]*driver
}

// Common is what the engines of one process share on a store: the name in leases with
// the key that opens what is sealed to it, and the one reader of the journal's end. It
// is safe for concurrent use.
type Common struct {
	owner    string
	key      holder.Key
	follower *follow.Follower
}

// NewCommon returns what engines on a store share. A store in the memory of this process
// has the owner and the key of all such stores.
func NewCommon(store journal.Store, inMemory bool) *Common {
	c := &Common{follower: follow.New(store)}
	if inMemory {
		c.owner, c.key = holder.Own()
	} else {
		c.owner, c.key = holder.New()
	}
	return c
}

// New returns an engine on a store. machines makes an empty machine of the
// version that a run's first event names.
func New(store journal.Store, machines func(version string) (machine.Machine, error), o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = NewID
	}
	if o.NewNonce == nil {
		o.NewNonce = newNonce
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
	return &Engine{
		store: store, follower: common.follower, machines: machines, opts: o, letters: common.key, observed: o.observed(),
		claims: map[string]bool{}, silences: map[string]silence{}, drivers: map[string]*driver{},
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

// newNonce returns 16 random letters and digits, 80 bits of them unknown.
func newNonce() string { return strings.ToLower(rand.Text()[:16]) }

// Close interrupts the runs that this engine still drives, so that they park,
// and returns when it drives none. The journal stays open.
func (e *Engine) Close() error {
	e.mu.Lock()
	driven := slices.Collect(maps.Values(e.drivers))
	e.mu.Unlock()
	for _, d := range driven {
		d.life.interruptOnce()
	}
	for _, d := range driven {
		<-d.result.done
	}
	return nil
}

// Start creates a run and drives it. Cancelling ctx cancels the run, unless
// its cause is [ErrInterrupted], which parks it; a ctx that has ended already
// creates nothing.
func (e *Engine) Start(ctx context.Context, started event.RunStarted, env Env) (*Run, error) {
	return e.StartAs(ctx, e.opts.NewID(), started, env)
}

// StartAs is [Engine.Start] for a run of that id. The error wraps [journal.ErrExists]
// where there is one already.
func (e *Engine) StartAs(ctx context.Context, id string, started event.RunStarted, env Env) (*Run, error) {
	return driven(e.start(ctx, id, started, nil, env))
}

// driven drives a run on a goroutine of its own, unless there was an error.
func driven(r *Run, err error) (*Run, error) {
	if err == nil {
		go r.driver.drive()
	}
	return r, err
}

// start creates a run of that id, which is to be driven. above are the children of the
// run that starts it, nil for nobody.
func (e *Engine) start(ctx context.Context, id string, started event.RunStarted, above *children, env Env) (*Run, error) {
	parent := ""
	if above != nil {
		parent = above.run.id
	}
	d, err := e.create(ctx, id, started, parent, env)
	if err != nil {
		return nil, errors.Join(err, env.close())
	}
	d.attach(above)
	return e.ready(ctx, d), nil
}

// Create makes a run without driving it: its first event is journalled and its
// lease is free. secrets are those of the run, as in [Env].
func (e *Engine) Create(ctx context.Context, started event.RunStarted, secrets *secret.Redactor) (string, error) {
	d, err := e.create(ctx, e.opts.NewID(), started, "", Env{Secrets: secrets})
	if err != nil {
		return "", err
	}
	defer e.unclaim(d.run.id)
	if err := e.store.Release(context.WithoutCancel(ctx), d.log.lease.held); err != nil {
		return "", fmt.Errorf("engine: create run %s: %w", d.run.id, err)
	}
	return d.run.id, nil
}

// create journals the run's first event under a fresh lease.
func (e *Engine) create(ctx context.Context, id string, started event.RunStarted, parent string, env Env) (*driver, error) {
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
	if started.Fence != nil && started.Fence.Nonce == "" {
		started.Fence = &event.Fence{Nonce: e.opts.NewNonce()}
	}
	started.Secrets = e.secretNames(ctx, d)
	first, err := d.env.record.Blobs.Begin(ctx, started)
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
	d.log.lease.unmade = true
	if parent != "" {
		return d, nil // the run above has the intent, so what a crash loses is begun anew
	}
	if err := d.commit(ctx); err != nil {
		e.unclaim(d.run.id)
		return nil, err
	}
	return d, nil
}

// ErrReplay is returned for a run whose calls were answered from the record of
// another: with tools that act it would do what was only to be looked at.
var ErrReplay = errors.New("engine: the run is a replay, which cannot be resumed after its process has ended")

// Resume takes up a run that nobody drives: parked, or left by a process that
// is gone. build makes the run's environment from its first event. Cancelling
// ctx cancels the run, as with [Engine.Start].
//
// A child of another run goes on when that is resumed, and is refused with a
// *[ChildError]; a replay is refused with an [ErrReplay].
func (e *Engine) Resume(ctx context.Context, run string, build func(event.RunStarted) (Env, error)) (*Run, error) {
	return driven(e.resume(ctx, run, build, nil))
}

func (e *Engine) resume(ctx context.Context, run string, build func(event.RunStarted) (Env, error), above *children) (*Run, error) {
	d, started, err := e.takePatiently(ctx, run)
	if err != nil {
		return nil, err
	}
	giveUp := func(err error) (*Run, error) {
		d.log.lease.release(ctx)
		e.unclaim(run)
		return nil, err
	}
	if d.run.parent != "" && above == nil {
		return giveUp(&ChildError{Run: run, Parent: d.run.parent, Root: d.run.root})
	}
	if started.Replays != "" {
		return giveUp(fmt.Errorf("%w; replay run %s again", ErrReplay, started.Replays))
	}
	env, err := build(started)
	if err != nil {
		return giveUp(err)
	}
	d.env.equip(env)
	d.attach(above)
	d.env.Inputs = nil
	resumed := event.RunResumed{Recovered: d.machine.State().Parked == nil, Owner: e.opts.Owner, Policy: policy.Reading, Secrets: e.otherSecrets(ctx, d), Served: e.opts.Served}
	sent, err := e.store.Inbox(ctx, run)
	if err != nil {
		err = fmt.Errorf("engine: resume run %s: %w", run, err)
	} else {
		d.inbox.overrule(sent)
		resumed.Unread = e.unreadable(sent)
		err = d.stage(resumed)
	}
	if err != nil {
		return giveUp(errors.Join(err, d.env.close()))
	}
	return e.ready(ctx, d), nil
}

// past reads what the runs of the store did.
// Past reads what runs of the store did.
func (e *Engine) Past() drive.Past { return drive.Past{Store: e.store, Machines: e.machines} }

// Recording reads what a run asked its models and what they answered. A call
// that was interrupted has no outcome and is left out.
func (e *Engine) Recording(ctx context.Context, run string) ([]replay.Call, error) {
	return e.Past().Recording(ctx, run)
}

// Inspect folds a run's journal without taking it, for display.
func (e *Engine) Inspect(ctx context.Context, run string) (machine.Machine, error) {
	d, _, err := e.load(ctx, run, false)
	if err != nil {
		return nil, err
	}
	return d.machine, nil
}

// ready makes a run known that is to be driven until ctx ends.
func (e *Engine) ready(ctx context.Context, d *driver) *Run {
	if len(d.env.Children) > 0 {
		d.budget.requests = newChildRequests()
	}
	d.life.ctx, d.env.live.source = ctx, e.follower.Source(d.run.root)
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

// register makes a driver known, so that what this process sends wakes it.
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
