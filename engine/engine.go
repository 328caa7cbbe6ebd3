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
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/tool"
)

// Options are the seams of an engine. The zero values are right outside tests.
type Options struct {
	// Now is the clock that stamps events; nil means time.Now.
	Now func() time.Time
	// NewID makes run ids; nil means random ones.
	NewID func() string
	// Owner names this process in leases; empty means [ProcessOwner].
	Owner string
	// LeaseTTL is how long a run stays reserved for a process that has gone
	// silent; 0 means 15 s. It is renewed every third of that.
	LeaseTTL time.Duration
}

// Engine drives runs on one journal. It is safe for concurrent use.
type Engine struct {
	store    journal.Store
	machines func(version string) (machine.Machine, error)
	opts     Options

	mu      sync.Mutex
	drivers map[string]*driver
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// Env is what a run's effects need. It is built by whoever starts or resumes
// the run and is not part of the journal.
type Env struct {
	// Model returns the model behind a target ("provider/model") and the
	// provider's own name of it.
	Model func(target string) (llm.Model, string, error)
	Tools *tool.Set
	// Ask puts a pending approval to a person and waits for the answer; nil
	// where nobody can be asked, and the run then parks.
	Ask func(ctx context.Context, p event.ToolPendingApproval) (event.ToolApprovalResolved, error)
	// Close releases what the environment holds, once the run is not driven
	// any more; may be nil.
	Close func() error
}

// ErrNotDriven is returned when a run is not driven by this engine.
var ErrNotDriven = errors.New("engine: run is not driven here")

// New returns an engine on a store. machines makes an empty machine of the
// version that a run's first event names.
func New(store journal.Store, machines func(version string) (machine.Machine, error), o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = NewID
	}
	if o.Owner == "" {
		o.Owner = ProcessOwner()
	}
	if o.LeaseTTL == 0 {
		o.LeaseTTL = 15 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Engine{store: store, machines: machines, opts: o, drivers: map[string]*driver{}, stop: cancel}
	e.ended.Add(1)
	go e.deliverInbox(ctx)
	return e
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

// Close stops listening for commands. Runs that are still driven go on until
// their contexts end; see [Run.Wait].
func (e *Engine) Close() error {
	e.stop()
	e.ended.Wait()
	return nil
}

// Start creates a run and drives it. Cancelling ctx cancels the run.
func (e *Engine) Start(ctx context.Context, started event.RunStarted, parent string, env Env) (*Run, error) {
	m, err := e.machines(started.Machine)
	if err != nil {
		return nil, fmt.Errorf("engine: start run: %w", err)
	}
	d := e.newDriver(m, env, e.opts.NewID(), parent)
	if err := d.create(ctx, started); err != nil {
		return nil, err
	}
	return e.drive(ctx, d), nil
}

// Create makes a run without driving it: its first event is journalled and its
// lease is free.
func (e *Engine) Create(ctx context.Context, started event.RunStarted, parent string) (string, error) {
	m, err := e.machines(started.Machine)
	if err != nil {
		return "", fmt.Errorf("engine: create run: %w", err)
	}
	d := e.newDriver(m, Env{}, e.opts.NewID(), parent)
	if err := d.create(ctx, started); err != nil {
		return "", err
	}
	return d.run, e.store.Release(ctx, d.lease)
}

// Resume takes up a run that nobody drives: parked, or left by a process that
// is gone. build makes the run's environment from its first event.
func (e *Engine) Resume(ctx context.Context, run string, build func(event.RunStarted) (Env, error)) (*Run, error) {
	d, started, err := e.take(ctx, run)
	if err != nil {
		return nil, err
	}
	env, err := build(started)
	if err != nil {
		return nil, errors.Join(err, e.store.Release(ctx, d.lease))
	}
	d.env = env
	resumed := event.RunResumed{Recovered: d.machine.State().Parked == nil, Owner: e.opts.Owner}
	if err := d.stage(resumed); err != nil {
		return nil, errors.Join(err, e.store.Release(ctx, d.lease))
	}
	return e.drive(ctx, d), nil
}

// take acquires a run's lease and folds its journal.
func (e *Engine) take(ctx context.Context, run string) (*driver, event.RunStarted, error) {
	lease, err := e.acquire(ctx, run)
	if err != nil {
		return nil, event.RunStarted{}, err
	}
	d, started, err := e.load(ctx, run)
	if err == nil && d.machine.State().Phase == machine.Ended {
		err = fmt.Errorf("engine: run %s: %w", run, journal.ErrEnded)
	}
	if err != nil {
		return nil, event.RunStarted{}, errors.Join(err, e.store.Release(ctx, lease))
	}
	d.lease, d.cycle = lease, d.machine.State().Cycle
	return d, started, nil
}

// acquire takes a lease, also that of a process of this machine that is dead:
// its user need not wait for the lease to expire.
func (e *Engine) acquire(ctx context.Context, run string) (journal.Lease, error) {
	lease, err := e.store.Acquire(ctx, run, e.opts.Owner, "", e.opts.LeaseTTL)
	if held, ok := errors.AsType[*journal.HeldError](err); ok && ownerIsDead(held.Owner) {
		lease, err = e.store.Acquire(ctx, run, e.opts.Owner, held.Owner, e.opts.LeaseTTL)
	}
	if err != nil {
		return journal.Lease{}, fmt.Errorf("engine: take run %s: %w", run, err)
	}
	return lease, nil
}

// load folds a run's journal into a machine.
func (e *Engine) load(ctx context.Context, run string) (*driver, event.RunStarted, error) {
	var d *driver
	var started event.RunStarted
	const page = 1000
	for after := int64(0); ; {
		records, err := e.store.Records(ctx, run, after, page)
		if err != nil {
			return nil, started, fmt.Errorf("engine: load run %s: %w", run, err)
		}
		for _, r := range records {
			ev, err := event.Decode(r.Body)
			if err != nil {
				return nil, started, fmt.Errorf("engine: load run %s: %w", run, err)
			}
			if d == nil {
				var ok bool
				if started, ok = ev.Data.(event.RunStarted); !ok {
					return nil, started, fmt.Errorf("engine: run %s begins with %s", run, ev.Type())
				}
				m, err := e.machines(started.Machine)
				if err != nil {
					return nil, started, fmt.Errorf("engine: load run %s: %w", run, err)
				}
				d = e.newDriver(m, Env{}, run, ev.Parent)
				d.kind, d.name = started.Kind, started.Name
			}
			if err := d.machine.Apply(ev); err != nil {
				return nil, started, fmt.Errorf("engine: load run %s: %w", run, err)
			}
			d.seq, d.head, after = r.Seq, event.Hash(r.Body), r.Seq
		}
		if len(records) < page {
			break
		}
	}
	if d == nil {
		return nil, started, fmt.Errorf("engine: run %s: %w", run, journal.ErrNotFound)
	}
	return d, started, nil
}

// Inspect folds a run's journal without taking it, for display.
func (e *Engine) Inspect(ctx context.Context, run string) (machine.Machine, error) {
	d, _, err := e.load(ctx, run)
	if err != nil {
		return nil, err
	}
	return d.machine, nil
}

func (e *Engine) drive(ctx context.Context, d *driver) *Run {
	e.mu.Lock()
	e.drivers[d.run] = d
	e.mu.Unlock()
	r := &Run{ID: d.run, engine: e, driver: d}
	go func() {
		d.err = d.drive(ctx)
		e.mu.Lock()
		delete(e.drivers, d.run)
		e.mu.Unlock()
		close(d.done)
	}()
	return r
}
