// Package place lets a Temporal server decide when and where runs are driven. The
// journal stays the only truth: Temporal has the ids of runs, and no more of them than
// when to drive them again.
package place

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// Workflow is the name of the workflow that places one root run, whose id it has.
	Workflow = "pawl.run"
	// drive is the activity, and wake the signal of a run that has something new.
	drive = "drive"
	wake  = "wake"

	// beatEvery is how often an activity reports, and beatTimeout after how long
	// without a report another worker gets the run.
	beatEvery   = 5 * time.Second
	beatTimeout = 20 * time.Second
	// longestDrive bounds an activity, because Temporal needs a bound.
	longestDrive = 10 * 365 * 24 * time.Hour
)

// request is the input of the activity.
type request struct {
	Run string `json:"run"`
	// Resume drives a run that has nothing new to read.
	Resume bool `json:"resume,omitempty"`
}

// input is the input of the workflow.
type input struct {
	Resume bool `json:"resume,omitempty"`
	// Queue is the task queue of the workers that may drive the run, empty for all.
	Queue string `json:"queue,omitempty"`
	// Begin makes the run first.
	Begin *firing `json:"begin,omitempty"`
}

// outcome is the result of the activity.
type outcome struct {
	// State is the state in the run's row, and Wake when the run is due again; zero
	// means at the next signal.
	State string    `json:"state"`
	Wake  time.Time `json:"wake,omitzero"`
	// Queue is the task queue of the workers that may drive the run from then on.
	Queue string `json:"queue,omitempty"`
	// Elsewhere reports that the worker did not drive the run, because it does not have
	// the run's place.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// run is the workflow of one run. Its history grows by at most 20 events for each drive,
// however much the run does.
func run(ctx workflow.Context, in input) error {
	resume := in.Resume
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	signals := workflow.GetSignalChannel(ctx, wake)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           in.Queue,
		StartToCloseTimeout: longestDrive,
		HeartbeatTimeout:    beatTimeout,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	if in.Begin != nil {
		if err := workflow.ExecuteActivity(ctx, begin, beginRequest{id, *in.Begin}).Get(ctx, nil); err != nil {
			return err
		}
	}
	for {
		resume = drain(signals, resume)
		var o outcome
		if err := workflow.ExecuteActivity(ctx, drive, request{Run: id, Resume: resume}).Get(ctx, &o); err != nil {
			return err
		}
		if o.State == ended {
			return nil
		}
		moved := o.Queue != in.Queue
		if moved {
			in.Queue = o.Queue
			ctx = workflow.WithTaskQueue(ctx, in.Queue)
		}
		// The run waits in the queue of the workers that have its place, without an event.
		resume = moved && o.Elsewhere
		if !resume && (!o.Wake.IsZero() || signals.Len() == 0) {
			resume = await(ctx, signals, o.Wake)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, run, input{Resume: drain(signals, resume), Queue: in.Queue})
		}
	}
}

// await waits for a signal, or until at if it is not zero. It reports whether the run is
// to be resumed.
func await(ctx workflow.Context, signals workflow.ReceiveChannel, at time.Time) (resume bool) {
	s := workflow.NewSelector(ctx)
	s.AddReceive(signals, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &resume) })
	s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	if !at.IsZero() {
		timer, cancel := workflow.WithCancel(ctx)
		defer cancel()
		s.AddFuture(workflow.NewTimer(timer, max(at.Sub(workflow.Now(ctx)), time.Millisecond)), func(workflow.Future) { resume = true })
	}
	s.Select(ctx)
	return resume
}

// drain receives the signals that have arrived, and reports whether one of them resumes
// the run.
func drain(signals workflow.ReceiveChannel, resume bool) bool {
	for more := true; more; {
		var r bool
		more = signals.ReceiveAsync(&r)
		resume = resume || r
	}
	return resume
}
