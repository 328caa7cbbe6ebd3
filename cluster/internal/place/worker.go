package place

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawlrun/pawl/event"
	enginedrive "github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// ended is the state of a run that is never driven again.
const ended = string(journal.Ended)

// Driver drives runs; see [github.com/pawlrun/pawl/internal/server.Server.Drive].
type Driver interface {
	Drive(ctx context.Context, run string, resume bool) (row journal.Run, wake time.Time, err error)
	Begin(ctx context.Context, run string, started event.RunStarted) error
}

// Options configure a worker.
type Options struct {
	Driver Driver
	Store  journal.Store
	// Queue is the task queue of the journal; see [QueueOf].
	Queue string
	// MaxRuns is how many runs are driven at once. Lacks returns what the machine has too
	// little of to take another one, "" for nothing.
	MaxRuns int
	Lacks   func() string
	// Full is called when the worker begins or stops polling the queue of runs for any
	// worker. The argument reports whether it has stopped.
	Full func(bool)
	// Host is the name of the machine, and Labels are what it has for runs that ask for it,
	// NAME or NAME=DIR. Each has a task queue, whose poll takes up one of MaxRuns.
	Host   string
	Labels []string
	// Drain is how long runs may go on after the context of Work ends, before they park.
	Drain time.Duration
	Log   *slog.Logger
}

// errRefused is returned to Temporal, which tries again after longer and longer times, for
// a run that cannot be driven here.
var errRefused = errors.New("the run is not driven here; the log of the worker says why")

type activities struct {
	Options
	// parking ends when the runs of this worker have to park.
	parking context.Context
}

// drive is the activity: it drives a run until the run ends, parks, or waits for long.
func (a *activities) drive(ctx context.Context, r request) (outcome, error) {
	driven, left := context.WithCancel(ctx)
	defer left()
	defer context.AfterFunc(a.parking, left)()
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	type result struct {
		row  journal.Run
		wake time.Time
		err  error
	}
	done := make(chan result, 1)
	go func() {
		row, wake, err := a.Driver.Drive(driven, r.Run, r.Resume)
		done <- result{row, wake, err}
	}()
	for {
		select {
		case <-beats.C:
			activity.RecordHeartbeat(ctx)
		case d := <-done:
			return a.outcome(ctx, r.Run, d.row, d.wake, d.err)
		}
	}
}

// outcome returns the result of an activity. Temporal schedules it again after an error.
func (a *activities) outcome(ctx context.Context, id string, row journal.Run, wake time.Time, err error) (outcome, error) {
	if errors.Is(err, journal.ErrNotFound) {
		return outcome{State: ended}, nil // the run was deleted
	}
	if errors.Is(err, journal.ErrTenantFull) {
		return outcome{}, again("over the limit of its tenant", min(time.Duration(activity.GetInfo(ctx).Attempt)*fullAgain, fullLast))
	}
	if err != nil {
		a.Log.Warn("a run is not driven here", "run", id, "error", err)
		if _, held := errors.AsType[*journal.HeldError](err); held {
			return outcome{}, again("held", heldAgain)
		}
		// The error may quote the run, and Temporal keeps nothing of a run.
		return outcome{}, errRefused
	}
	started, _, err := enginedrive.Began(context.WithoutCancel(ctx), a.Store, id)
	if err != nil {
		a.Log.Warn("the place of a run is not known", "run", id, "error", err)
		return outcome{}, errRefused
	}
	o := outcome{State: string(row.State), Wake: wake, Queue: queueOf(a.Queue, started.Place), Elsewhere: row.WaitsForWorker()}
	if o.Elsewhere {
		return o, ctx.Err()
	}
	interrupted := row.State != journal.Ended && row.State != journal.Parked && row.State != journal.Paused
	if wake.IsZero() && (interrupted || row.State == journal.Parked && row.Detail == "interrupted") {
		return outcome{}, again("left", leftAgain) // another worker goes on with it
	}
	return o, ctx.Err()
}

const (
	// heldAgain is when a run is tried again that another process drives, leftAgain when
	// one that this worker left. A run whose tenant has no room is tried after fullAgain,
	// and that much later each time, because there may be thousands of them.
	heldAgain = 2 * time.Second
	leftAgain = 100 * time.Millisecond
	fullAgain = time.Second
	fullLast  = 30 * time.Second
)

// again returns an error after which Temporal schedules the activity again, however
// often it has done so before.
func again(kind string, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions("the run is "+kind, kind, temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

// Work drives the runs that Temporal places here, until ctx ends. Then it asks for no
// more, lets the runs go on for Drain, and parks them.
func Work(ctx context.Context, c client.Client, o Options) error {
	parking, park := context.WithCancel(context.WithoutCancel(ctx))
	defer park()
	a := &activities{Options: o, parking: parking}
	queues := []string{o.Queue, queueOf(o.Queue, event.Place{Host: o.Host})}
	for _, label := range o.Labels {
		name, _, _ := strings.Cut(label, "=")
		queues = append(queues, queueOf(o.Queue, event.Place{Label: name}))
	}
	tuner, err := tune(&room{slots: make(chan struct{}, o.MaxRuns), lacks: o.Lacks, log: o.Log, queue: o.Queue, full: o.Full})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { time.AfterFunc(o.Drain, park) })()
	var stopped sync.WaitGroup
	defer stopped.Wait()
	pollers := max(1, min(o.MaxRuns-len(queues)+1, 4))
	for _, queue := range queues {
		w := a.start(ctx, func() worker.Worker { return a.worker(c, queue, tuner, pollers) })
		if w == nil {
			return nil // ctx has ended
		}
		defer stopped.Go(w.Stop) // all at once
		pollers = 1
	}
	o.Log.Info("takes runs", "queue", o.Queue, "runs", o.MaxRuns)
	<-ctx.Done()
	return nil
}

// start starts a worker. While Temporal cannot be reached, it tries again until ctx ends,
// and then returns nil. A worker starts only once, so each attempt is another one.
func (a *activities) start(ctx context.Context, create func() worker.Worker) worker.Worker {
	for again := startAgain; ctx.Err() == nil; again = min(2*again, startLast) {
		w := create()
		err := w.Start()
		if err == nil {
			return w
		}
		if again == startAgain {
			a.Log.Warn("Temporal cannot be reached; the worker tries again until it is stopped", "error", err)
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
	return nil
}

const (
	// startAgain is when a worker that does not reach Temporal tries again, and startLast
	// the longest time between two attempts.
	startAgain = time.Second
	startLast  = 15 * time.Second
)

// worker returns the worker of a task queue. Workflows run in the queue of the journal.
func (a *activities) worker(c client.Client, queue string, tuner worker.WorkerTuner, pollers int) worker.Worker {
	w := worker.New(c, queue, worker.Options{
		Tuner:                            tuner,
		MaxConcurrentActivityTaskPollers: pollers,
		DisableWorkflowWorker:            queue != a.Queue,
		DisableEagerActivities:           true,
		WorkerStopTimeout:                a.Drain + parkWithin,
		DeadlockDetectionTimeout:         longestStep,
		DisableRegistrationAliasing:      true,
	})
	w.RegisterActivityWithOptions(a.drive, activity.RegisterOptions{Name: drive})
	if queue == a.Queue {
		w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Workflow})
		w.RegisterWorkflowWithOptions(scheduled, workflow.RegisterOptions{Name: scheduledWorkflow})
		w.RegisterActivityWithOptions(a.begin, activity.RegisterOptions{Name: begin})
	}
	return w
}

// tune returns the limits of a worker: activities, which drive runs, get slots of r.
func tune(r *room) (worker.WorkerTuner, error) {
	small, err := worker.NewFixedSizeSlotSupplier(workflowTasks)
	if err != nil {
		return nil, err
	}
	return worker.NewCompositeTuner(worker.CompositeTunerOptions{
		WorkflowSlotSupplier: small, ActivitySlotSupplier: r, LocalActivitySlotSupplier: small,
		NexusSlotSupplier: small, SessionActivitySlotSupplier: small,
	})
}

// longestStep is how long a workflow may go on without yielding before that is an error. It
// is long because no workflow here computes: only a busy machine delays one.
const longestStep = 20 * time.Second

// workflowTasks is how many workflows a worker advances at once, each of which takes
// milliseconds.
const workflowTasks = 32

// parkWithin bounds the time in which the runs of a worker park.
const parkWithin = 10 * time.Second
