package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/secret"
	"github.com/pawlrun/pawl/tool"
)

// Child is an agent that a run may start, behind the tool of its name. Both
// functions are called from the goroutine of a call, of several calls at once.
type Child struct {
	// Begin gives the first event and the environment of a new child.
	Begin func(args json.RawMessage) (event.RunStarted, Env, error)
	// Resume gives the environment of a run that was begun before.
	Resume func(run string, started event.RunStarted) (Env, error)
	// Secrets are those of the environments that both give. They are taken out
	// of what somebody tells the child, also while it is parked and nobody drives
	// it; nil knows none.
	Secrets *secret.Redactor
}

// ChildError is returned for a run that goes on under its parent alone: it
// draws from its parent's budget.
type ChildError struct {
	Run    string
	Parent string
}

// Error names the run to resume instead.
func (e *ChildError) Error() string {
	return fmt.Sprintf("run %s was started by run %s and draws from its budget, so it goes on when run %s is resumed", e.Run, e.Parent, e.Parent)
}

// errAbove is why a child ends whose parent was cancelled, and errAboveTime why
// one does whose parent has no time left.
var (
	errAbove     = errors.New("the run that started this one was cancelled")
	errAboveTime = errors.New("the run that started this one has no time left")
	errDeep      = errors.New("an agent that is offered to another one cannot offer agents itself")
)

// childFlight is a child under way.
type childFlight struct {
	run string
	// err is why nobody knows what became of the child, and seq the number of its
	// last event where it parked. They are read once the flight has landed.
	err error
	seq int64
	// raised says that a limit of this run was changed since the child was last
	// refused something.
	raised bool
}

// beginChild journals the intent of a child and queues its start, or queues a
// child that was begun before. One that is under way is left alone.
func (d *driver) beginChild(work context.Context, a machine.StartChild) (bool, error) {
	id := a.Call.CallID
	if d.children[id] != nil {
		return false, nil
	}
	before, child := d.seq, a.Child
	if child == "" {
		child = d.engine.opts.NewID()
		if err := d.stage(event.ToolStarted{CallID: id, Attempt: a.Call.Attempt, Key: a.Call.Key}); err != nil {
			return false, err
		}
		if err := d.stage(event.ChildStarted{Child: child, Kind: "Agent", Name: a.Call.Tool, CallID: id}); err != nil {
			return false, err
		}
	} else if err := d.reconcile(work, child, false); err != nil {
		return false, err
	}
	begun := a // what is captured moves to the heap, also of a child that is under way
	d.fly(a.Call, child, d.observeStart, func(ctx context.Context) (childEnd, error) { return d.playChild(ctx, begun, child) })
	return d.seq != before, nil
}

// cancelChild queues the end of a child that is not under way.
func (d *driver) cancelChild(a machine.CancelChild) {
	if d.children[a.Call.CallID] == nil {
		d.fly(a.Call, a.Child, d.observeEnd, func(ctx context.Context) (childEnd, error) {
			return d.endChild(ctx, a.Child, a.Reason)
		})
	}
}

// childEnd is where a child stands that has left: it ended, it parked, or it
// was stopped before it was there.
type childEnd struct {
	outcome *event.Outcome
	parked  *event.RunParked
	taint   event.Taint
	// seq is the number of the last event of a child that parked.
	seq int64
	// failed is why the agent could not be started, and withheld what the
	// observers answered instead of handing the call on.
	failed, withheld error
}

// fly queues the flight of a child, which is played inside the observers.
func (d *driver) fly(call machine.RunTool, child string, observe childObserver, play childPlay) {
	f := &childFlight{run: child}
	if d.children == nil {
		d.children = map[string]*childFlight{}
	}
	d.children[call.CallID] = f
	d.queue = append(d.queue, func(work context.Context) {
		timed, release := d.until(work, 0)
		ctx, stop := context.WithCancelCause(timed)
		start := d.clock.awake()
		settle := func(end childEnd, err error) []event.Data {
			if f.seq = end.seq; err != nil {
				f.err = err
				return nil
			}
			return d.childSettled(ctx, call, child, end, start)
		}
		d.launch(ctx, func() { stop(nil); release() }, effect{
			id: call.CallID, unhurried: true,
			do: func(ctx context.Context) []event.Data {
				return settle(observe(ctx, call, child, play))
			},
			giveUp: func(_ context.Context, why error) []event.Data { return settle(childEnd{}, why) },
		})
		d.flights[call.CallID].cancel = func() { stop(d.whyStopped()) }
	})
}

// whyStopped is why the driver stops its children: they end with a run that
// ends, and park with one that does not.
func (d *driver) whyStopped() error {
	if d.cancelled || d.broken {
		return errAbove
	}
	return ErrInterrupted
}

// playChild drives a child until it ends or parks.
func (d *driver) playChild(ctx context.Context, a machine.StartChild, child string) (childEnd, error) {
	inside, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer context.AfterFunc(ctx, func() { leave(above(ctx)) })()
	for {
		switch cause := above(ctx); {
		case waitsForTime(ctx):
			return childEnd{parked: &event.RunParked{Reason: event.ParkInterrupted, Detail: errAboveTime.Error()}}, nil
		case errors.Is(cause, ErrInterrupted):
			return childEnd{}, nil
		case cause != nil:
			return d.endChild(ctx, child, cause.Error())
		}
		run, end, err := d.takeChild(inside, a, child)
		switch {
		case d.heldUp(ctx, err):
		case err != nil && inside.Err() != nil:
			// It was stopped before it was there.
		case err != nil || run == nil:
			return end, err
		default:
			end, err := leftAs(run.Wait(context.WithoutCancel(ctx)))
			if end.parked != nil {
				end.seq = run.driver.seq
			}
			return end, err
		}
	}
}

// waitsForTime says that a run's children stop because it has no time left, and
// its owner is asked for more: they park with it.
func waitsForTime(ctx context.Context) bool {
	late, ok := errors.AsType[outOfTime](context.Cause(ctx))
	return ok && late.asks
}

// above is why a child is stopped, in words of its own; nil while it is not.
func above(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case waitsForTime(ctx):
		return ErrInterrupted
	case errors.As(cause, new(outOfTime)):
		return errAboveTime
	case cause == nil || errors.Is(cause, ErrInterrupted):
		return cause
	}
	return errAbove
}

// takeChild starts a child or takes up one that was begun before. One that has
// ended already, or cannot go on, has no run. What keeps a child from going on
// here may be mended, so that it parks; what it did is kept. What keeps one from
// being made would do so again, and is the call's error.
func (d *driver) takeChild(ctx context.Context, a machine.StartChild, child string) (*Run, childEnd, error) {
	e, kept := d.engine, context.WithoutCancel(ctx)
	row, err := e.store.Run(kept, child)
	missing := errors.Is(err, journal.ErrNotFound)
	offered, known := d.env.Children[a.Call.Tool]
	switch {
	case err != nil && !missing:
		return nil, childEnd{}, d.storeFailed(err)
	case err == nil && row.State == journal.Ended:
		end, err := e.endOf(kept, row)
		return nil, end, err
	case !known:
		gone := errors.New("the agent " + a.Call.Tool + " is not there any more")
		end, err := d.endChild(ctx, child, gone.Error())
		end.failed = gone
		return nil, end, err
	case missing:
		return d.makeChild(ctx, a, child, offered)
	}
	var unbuilt error
	run, err := e.resume(ctx, child, func(started event.RunStarted) (env Env, err error) {
		env, unbuilt = guard(func() (Env, error) { return offered.Resume(child, started) }, toolPanic)
		return env, unbuilt
	}, d.fund)
	if err != nil && (unbuilt != nil || isUnreadable(err)) {
		return nil, childEnd{parked: &event.RunParked{Reason: event.ParkInterrupted, Detail: "it cannot go on: " + err.Error()}}, nil
	}
	return run, childEnd{}, err
}

// makeChild starts a child that is not there yet.
func (d *driver) makeChild(ctx context.Context, a machine.StartChild, child string, offered Child) (*Run, childEnd, error) {
	var env Env
	started, err := guard(func() (started event.RunStarted, err error) {
		started, env, err = offered.Begin(bytes.Clone(a.Call.Args))
		return started, err
	}, toolPanic)
	if err == nil && len(env.Children) > 0 {
		err = errors.Join(errDeep, env.close())
	}
	if err == nil {
		started.Taint = a.Taint
		run, startErr := d.engine.start(ctx, child, started, d.run, env, d.fund)
		if startErr == nil || ctx.Err() != nil || errors.As(startErr, new(*storeError)) {
			return run, childEnd{}, startErr
		}
		err = startErr
	}
	return nil, childEnd{outcome: notStarted(err), failed: err}, nil
}

// notStarted is the outcome of a child that never was.
func notStarted(err error) *event.Outcome {
	return &event.Outcome{
		Status: event.StatusFailed, Reason: event.ReasonToolUnavailable,
		Error: &event.Failure{Class: "not_started", Message: err.Error()},
	}
}

// leftAs is where a child stands that is not driven any more. What its
// environment or its last look at the inbox failed with changes nothing of that.
func leftAs(s machine.State, err error) (childEnd, error) {
	switch {
	case s.Outcome != nil:
		return childEnd{outcome: s.Outcome, taint: s.Taint}, nil
	case s.Parked != nil:
		return childEnd{parked: s.Parked, taint: s.Taint}, nil
	case err == nil:
		err = errors.New("engine: a child left without having ended or parked")
	}
	return childEnd{}, err
}

// childSettled is what a child's flight brings.
func (d *driver) childSettled(ctx context.Context, call machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
	if p := end.parked; p != nil {
		return []event.Data{event.ChildParked{
			Child: child, CallID: call.CallID, Reason: p.Reason, Detail: p.Detail, CallIDs: p.CallIDs, Until: p.Until,
			Limit: p.Limit, ParentLimit: p.ParentLimit, AtLeast: p.AtLeast,
		}}
	}
	if end.outcome == nil {
		return nil
	}
	return d.childFinished(ctx, call, child, end, start)
}

func (d *driver) childFinished(ctx context.Context, call machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
	r, err := childResult(call.Tool, end)
	if end.outcome.Status != event.StatusCancelled {
		ctx = context.WithoutCancel(ctx) // it ended by itself, whatever has come since
	}
	result := d.toolResult(ctx, call, r, err, 0)
	result.DurationMs = d.clock.awake().Sub(start).Milliseconds()
	return []event.Data{event.ChildFinished{Child: child, CallID: call.CallID, Outcome: *end.outcome}, d.blobs.detach(result)}
}

// childResult is how a child ended in the words of a tool: its final output, or
// an error that says why there is none and what can be done.
func childResult(name string, end childEnd) (tool.Result, error) {
	o := end.outcome
	r := tool.Result{Untrusted: true, Private: end.taint.Private != nil}
	switch {
	case o == nil:
		return r, &tool.Error{Type: event.ErrorAgent, Message: "the agent " + name + " has not ended"}
	case end.withheld != nil:
		return r, end.withheld
	case end.failed != nil:
		return r, &tool.Error{Type: event.ErrorUnavailable, Message: "the agent " + name + " could not be started: " + end.failed.Error()}
	case o.OK:
		r.Output = o.FinalOutput
		return r, nil
	}
	kind := event.ErrorAgent
	if o.Status == event.StatusCancelled {
		kind = event.ErrorCancelled
	}
	message := fmt.Sprintf("the agent %s did not finish: %s", name, o.Reason)
	if o.Error != nil {
		message += ": " + o.Error.Message
	}
	if o.NextSafeAction != "" {
		message += ". " + o.NextSafeAction
	}
	r.Output = o.LastOutput
	return r, &tool.Error{Type: kind, Message: message}
}

// childLeft comes before what a child's flight brought is journalled: first the
// account must say what the child used, and nothing may be kept for it that it
// will not ask for again.
func (d *driver) childLeft(work context.Context, s settlement) error {
	f := d.children[s.flight]
	if f == nil {
		return nil
	}
	delete(d.children, s.flight)
	if _, err := d.answerDraws(f.run); err != nil {
		return err
	}
	if f.err != nil {
		return d.storeFailed(f.err)
	}
	for _, data := range s.data {
		if p, ok := data.(event.ChildParked); ok {
			d.parked = append(d.parked, parkedChild{ChildParked: p, seq: f.seq, raised: f.raised, news: true})
		}
	}
	return d.reconcile(work, f.run, slices.ContainsFunc(s.data, isFinished))
}

func isFinished(data event.Data) bool {
	_, ok := data.(event.ChildFinished)
	return ok
}

// Addressee is the run that a command is for: a decision about a call goes to
// the run that made the call, where that is the named run or a child of it. An id
// of a call begins with that of its run.
func (e *Engine) Addressee(ctx context.Context, c journal.Command) string {
	if !isDecision(c) || strings.HasPrefix(c.CallID, c.Run+"-") {
		return c.Run
	}
	parts := strings.Split(c.CallID, "-")
	if len(parts) < 3 {
		return c.Run
	}
	made := strings.Join(parts[:len(parts)-2], "-")
	if row, err := e.store.Run(ctx, made); err == nil && row.Parent == c.Run {
		return made
	}
	return c.Run
}
