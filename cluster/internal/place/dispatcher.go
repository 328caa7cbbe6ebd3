package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	enginedrive "github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/journal"
)

const (
	// sweepEvery is how often the journal is searched for runs that have no workflow or
	// something new to read.
	sweepEvery = 5 * time.Second
	// queueAgain is when a client may queue a run again.
	queueAgain = 5 * time.Second
	// dispatchAgain is when a run that was dispatched and still waits is dispatched again,
	// in case its workflow was terminated. A sweep does so for againAtOnce runs at most,
	// because there may be thousands in the queue.
	dispatchAgain = time.Minute
	againAtOnce   = 50
	// call bounds a request to Temporal.
	call = 2 * time.Second
)

// Dispatcher starts and signals the workflows of runs. It implements
// [github.com/pawlrun/pawl/internal/server.Dispatcher].
type Dispatcher struct {
	Client client.Client
	Store  journal.Store
	// Queue is the task queue of the journal; see [QueueOf].
	Queue string
	// MaxQueued is how many root runs may be queued.
	MaxQueued int
	// Placing returns the tenant of a principal, with its limits.
	Placing func(event.Principal) tokens.Placing
	Log     *slog.Logger

	// mu guards queued, the number of queued runs when it was counted and those that
	// were admitted since, and dispatched, which has the runs that wait.
	mu         sync.Mutex
	queued     int
	counted    time.Time
	dispatched map[string]remembered
	// down reports that Temporal could not be reached at the last attempt.
	down atomic.Bool
}

// errDown reports that Temporal could not be reached a moment ago.
var errDown = errors.New("place: Temporal cannot be reached")

// Dispatch signals the workflow of a run, and starts it if there is none. While Temporal
// cannot be reached it fails at once, so that starts do not wait; sweeps try on.
func (d *Dispatcher) Dispatch(ctx context.Context, run string, resume bool) error {
	if d.down.Load() {
		return errDown
	}
	err := d.reached(d.dispatch(ctx, run, resume, resume))
	if err == nil {
		d.remember(waiting{run: run})
	}
	return err
}

// reached notes whether Temporal answered, and returns [errDown] if it did not.
func (d *Dispatcher) reached(err error) error {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	down := unavailable || late || errors.Is(err, context.DeadlineExceeded)
	d.down.Store(down)
	if down {
		return errors.Join(errDown, err)
	}
	return err
}

// dispatch starts the workflow of a run if there is none, and signals it if signal is set.
func (d *Dispatcher) dispatch(ctx context.Context, run string, signal, resume bool) error {
	o, in, err := d.options(ctx, run)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, call)
	defer cancel()
	if signal {
		_, err = d.Client.SignalWithStartWorkflow(ctx, run, wake, resume, o, Workflow, in)
	} else {
		_, err = d.Client.ExecuteWorkflow(ctx, o, Workflow, in)
	}
	if err != nil {
		return fmt.Errorf("place: dispatch run %s: %w", run, err)
	}
	return nil
}

// options returns the options and the input of a run's workflow: the fairness key is the tenant of the
// run. It assigns the tenant in the journal, which limits how many of its runs are driven.
func (d *Dispatcher) options(ctx context.Context, run string) (o client.StartWorkflowOptions, in input, err error) {
	started, _, err := enginedrive.Began(ctx, d.Store, run)
	if err != nil {
		return o, in, fmt.Errorf("place: dispatch run %s: %w", run, err)
	}
	p := d.Placing(started.Principal)
	if tenants, may := d.Store.(journal.KeepsTenants); may {
		if err := tenants.Assign(ctx, run, p.Tenant, p.MaxRunning); err != nil {
			return o, in, err
		}
	}
	in.Queue = queueOf(d.Queue, started.Place)
	return client.StartWorkflowOptions{
		ID:                                       run,
		TaskQueue:                                d.Queue,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: false,
		Priority: temporal.Priority{
			PriorityKey: started.Priority, FairnessKey: p.Tenant[:min(len(p.Tenant), 64)], FairnessWeight: float32(p.Weight),
		},
	}, in, nil
}

// Full implements the server's Dispatcher. It counts at most once a second.
func (d *Dispatcher) Full(ctx context.Context) (time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if tenants, may := d.Store.(journal.KeepsTenants); may && time.Since(d.counted) > time.Second {
		load, err := tenants.Load(ctx)
		if err != nil {
			return 0, err
		}
		d.queued, d.counted = 0, time.Now()
		for _, l := range load {
			if l.State == journal.Queued {
				d.queued += l.Runs
			}
		}
	}
	if d.queued >= d.MaxQueued {
		return queueAgain, nil
	}
	d.queued++
	return 0, nil
}

// Run sweeps until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("not all runs are dispatched", "error", err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweep starts the workflows of runs that no process drives, and signals those of runs
// with unread commands.
func (d *Dispatcher) sweep(ctx context.Context) error {
	due, err := d.due(ctx)
	if err != nil {
		return err
	}
	if d.down.Load() {
		ctx, cancel := context.WithTimeout(ctx, call)
		defer cancel()
		if _, err := d.Client.CheckHealth(ctx, nil); errors.Is(d.reached(err), errDown) {
			return err
		}
	}
	// A workflow that is there gets a signal only if the run has unread commands, because a
	// signal makes its history longer.
	for _, w := range d.missed(due) {
		if w.unread == 0 && !w.row.WaitsForWorker() {
			if left, err := control.LeftByServer(ctx, d.Store, w.row); err == nil && !left {
				d.remember(w) // a command line drove it, and its user continues it
				continue
			}
		}
		if err = d.reached(d.dispatch(ctx, w.run, w.signal, false)); err == nil {
			d.remember(w)
			continue
		}
		if errors.Is(err, errDown) || ctx.Err() != nil {
			return err // the others would fail like this one
		}
		d.Log.Warn("a run is not dispatched", "run", w.run, "error", err)
	}
	return nil
}

// waiting is a root run that needs a worker.
type waiting struct {
	run string
	row journal.Run
	// unread is the newest unread command of its tree, 0 if there is none.
	unread int64
	// signal reports whether its workflow is signalled.
	signal bool
}

// remembered is when a run was dispatched, and the newest command that the workflow was
// signalled for.
type remembered struct {
	at     time.Time
	unread int64
}

func (d *Dispatcher) remember(w waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dispatched == nil {
		d.dispatched = map[string]remembered{}
	}
	d.dispatched[w.run] = remembered{time.Now(), w.unread}
}

// missed returns the runs to dispatch now: those that were not dispatched yet or have a
// new command, and some of those that still wait although they were dispatched.
func (d *Dispatcher) missed(due []waiting) (all []waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	still := make(map[string]bool, len(due))
	var again []waiting
	for _, w := range due {
		still[w.run] = true
		last, known := d.dispatched[w.run]
		switch {
		case !known || w.unread > last.unread:
			w.signal = w.unread > 0
			all = append(all, w)
		case time.Since(last.at) > dispatchAgain:
			w.signal = w.unread > 0 && !w.row.WaitsForWorker() // a run may wait for days, and a signal makes its history longer
			again = append(again, w)
		}
	}
	maps.DeleteFunc(d.dispatched, func(run string, last remembered) bool {
		return !still[run] && time.Since(last.at) > dispatchAgain
	})
	slices.SortStableFunc(again, func(a, b waiting) int { return d.dispatched[a.run].at.Compare(d.dispatched[b.run].at) })
	return append(all, again[:min(len(again), againAtOnce)]...)
}

// due returns the root runs that need a worker, oldest first. The store judges which
// leases are free, because this machine's clock may differ.
func (d *Dispatcher) due(ctx context.Context) (due []waiting, err error) {
	free, err := d.Store.Runs(ctx, journal.Filter{Roots: true, Free: true, States: []journal.State{journal.Queued, journal.Running, journal.Waiting}})
	interrupted, wrong := d.Store.Runs(ctx, journal.Filter{Roots: true, Free: true, States: []journal.State{journal.Parked}, Detail: string(event.ParkInterrupted)})
	index := map[string]int{}
	for _, r := range slices.Backward(append(free, interrupted...)) {
		if !toBeRun(r) {
			index[r.ID] = len(due)
			due = append(due, waiting{run: r.ID, row: r})
		}
	}
	commands, unseen := d.Store.Inbox(ctx, "")
	unread := map[string]int64{}
	for _, c := range commands {
		unread[c.Run] = max(unread[c.Run], c.ID)
	}
	for run, command := range unread {
		row, err := d.Store.Run(ctx, run)
		if err != nil {
			continue // it was deleted
		}
		root := row.Placed().Root
		i, is := index[root]
		if !is {
			rows, err := d.Store.Runs(ctx, journal.Filter{Root: root, Roots: true, Free: true})
			if err != nil || len(rows) == 0 || rows[0].State == journal.Ended || toBeRun(rows[0]) {
				continue
			}
			i = len(due)
			index[root], due = i, append(due, waiting{run: root, row: rows[0]})
		}
		due[i].unread = max(due[i].unread, command)
	}
	return due, cmp.Or(err, wrong, unseen)
}

// toBeRun reports whether a run is a fork that waits to be resumed.
func toBeRun(r journal.Run) bool { return r.State == journal.Queued && r.ForkOf != "" }
