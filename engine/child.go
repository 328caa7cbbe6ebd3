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

// Child is what a run may start, behind the name of a tool or of a step: a run, or a
// function of the program. Begin and Resume are called from the goroutine of a call, of several calls at once.
type Child struct {
	// Begin gives the first event and the environment of a new child.
	Begin func(args json.RawMessage) (event.RunStarted, Env, error)
	// BeginIn is Begin of one whose workspace is that directory; nil where it can have
	// no other one than its own.
	BeginIn func(dir string, args json.RawMessage) (event.RunStarted, Env, error)
	// Resume gives the environment of a run that was begun before.
	Resume func(run string, started event.RunStarted) (Env, error)
	// Secrets are those of the environments that both give. They are taken out
	// of what somebody tells the child, also while it is parked and nobody drives
	// it; nil knows none.
	Secrets *secret.Redactor
	// Func does the work in the place of a run. It has no journal of its own: what it
	// gave is in its parent's, and where a crash or an interruption came first it is
	// called again. It must return soon after ctx ends, and is called from several
	// goroutines at once.
	Func func(ctx context.Context, input json.RawMessage) (Output, error)
	// MaxDepth is how many levels of runs there may be below the run that offers
	// it, 0 for as many as the tree has room for.
	MaxDepth int
}

// Output is what a function gave: a text, and a result as JSON, nil for none.
type Output struct {
	Text   string
	Result json.RawMessage
}

// ChildError is returned for a run that goes on under its parent alone: it
// draws from its parent's budget.
type ChildError struct {
	Run    string
	Parent string
	// Root is the first of the runs above, which is the one to resume.
	Root string
}

// Error names the run to resume instead.
func (e *ChildError) Error() string {
	return fmt.Sprintf("run %s was started by run %s and requests from its budget, so it continues when run %s is resumed", e.Run, e.Parent, e.Root)
}

// errAbove is why a child ends whose parent was cancelled, and errAboveTime why
// one does whose parent has no time left.
var (
	errAbove     = errors.New("the run that started this one was cancelled")
	errAboveTime = errors.New("the run that started this one has no time left")
)

// DepthError is why a run was not started: the tree that it is of is as deep as
// it may be.
type DepthError struct {
	// Most is the depth that the tree may have, Path the names of the runs from its
	// root down to the one that was not started.
	Most int
	Path []string
}

// Error names the limit and the runs.
func (e *DepthError) Error() string {
	return fmt.Sprintf("a tree of runs is at most %d deep here (max_depth): %s", e.Most, strings.Join(e.Path, " > "))
}

// children are the runs below one.
type children struct {
	*core
	budget *childBudget
	// active are those that are driven, or end, by their effects; parked are those that
	// parked while this run goes on, and spokenTo those to which somebody said something.
	active   map[string]*pendingChild
	parked   []parkedChild
	spokenTo spokenTo
}

// pendingChild is a child under way.
type pendingChild struct {
	run string
	// stop ends it, for that cause.
	stop context.CancelCauseFunc
	// err is why nobody knows what became of the child, and seq the number of its
	// last event where it parked. They are read once the effect has been settled.
	err error
	seq int64
	// driven is the child's run where it is driven on the effect's own goroutine, and
	// leave releases its context.
	driven *Run
	leave  func()
	// apart is the step in whose worktree the child works, empty for none.
	apart string
	// raised says that a limit of this run was changed since the child was last
	// refused something.
	raised bool
}

// childID is the id of a child's effect.
func childID(action string) string { return "child " + action }

// begin journals the intent of a child and queues its start, or queues a
// child that was begun before. One that is under way is left alone.
func (cs *children) begin(work context.Context, a machine.StartChild) (bool, error) {
	if cs.active[childID(a.ID)] != nil {
		return false, nil
	}
	before, child := cs.log.seq, a.Child
	if again, ok := cs.machine.(machine.Repeater); ok && child != "" {
		a = again.Again(child)
	}
	if child == "" {
		child = cs.engine.opts.NewID()
		if err := cs.intend(a, child); err != nil {
			return false, err
		}
	} else if err := cs.budget.reconcile(work, child, false); err != nil {
		return false, err
	}
	begun := a // what is captured moves to the heap, also of a child that is under way
	cs.queue(a.ID, a.Call, child, cs.observeStart, func(ctx context.Context, f *pendingChild) (childEnd, error) {
		if begun.Worktree {
			f.apart = begun.Step
		}
		return cs.play(ctx, &begun, f)
	})
	return cs.log.seq != before, nil
}

func (cs *children) intend(a machine.StartChild, child string) error {
	intent := event.ChildStarted{Child: child, Kind: a.Kind, Name: a.Name, Step: a.Step, ID: a.ID}
	if c := a.Call; c != nil {
		intent.ID, intent.CallID = "", c.CallID
		if err := cs.stage(event.ToolStarted{CallID: c.CallID, Attempt: c.Attempt, Key: c.Key}); err != nil {
			return err
		}
	}
	return cs.stage(intent)
}

// stopped is why a child ends that its parent does not want any more.
type stopped struct{ reason string }

func (e stopped) Error() string { return e.reason }

// cancelChild ends a child that is under way, or queues the end of one that is not.
func (cs *children) cancelChild(a machine.CancelChild) {
	switch f := cs.active[childID(a.ID)]; {
	case f != nil && f.stop != nil && !cs.life.cancelled:
		f.stop(stopped{a.Reason})
	case f == nil:
		// What it parked for does not matter any more.
		cs.parked = slices.DeleteFunc(cs.parked, func(p parkedChild) bool { return p.Child == a.Child })
		cs.queue(a.ID, a.Call, a.Child, cs.observeEnd, func(ctx context.Context, _ *pendingChild) (childEnd, error) {
			return cs.end(ctx, a.Child, a.Reason)
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
	// worktree is where it worked, nil where it had none of its own.
	worktree *event.Worktree
	// failed is why the agent could not be started, and withheld what the
	// observers answered instead of handing the call on.
	failed, withheld error
	// fn says that the child is a function.
	fn bool
}

// queue queues the effect of a child. One that answers a call is played inside the
// observers.
func (cs *children) queue(id string, call *machine.RunTool, child string, observe childObserver, bring func(context.Context, *pendingChild) (childEnd, error)) {
	f := &pendingChild{run: child}
	play := func(ctx context.Context) (childEnd, error) { return bring(ctx, f) }
	if inside := play; call != nil {
		play = func(ctx context.Context) (childEnd, error) { return observe(ctx, *call, child, inside) }
	}
	if cs.active == nil {
		cs.active = map[string]*pendingChild{}
	}
	cs.active[childID(id)] = f
	cs.effects.add(func(work context.Context) {
		ctx, stop, release := cs.effects.stoppable(work, 0)
		f.stop = stop
		start := cs.env.clock.awake()
		var end childEnd
		var err error
		settle := func(end childEnd, err error) []event.Data {
			if f.seq = end.seq; err != nil {
				f.err = err
				return nil
			}
			return cs.env.childSettled(ctx, call, child, end, start)
		}
		cs.effects.launch(ctx, release, effect{
			id: childID(id), unhurried: true,
			before: []func(context.Context){
				func(ctx context.Context) { end, err = play(ctx) },
				func(context.Context) {
					if f.driven != nil {
						f.driven.driver.drive()
					}
				},
			},
			do: func(ctx context.Context) []event.Data {
				if f.driven != nil {
					f.leave()
					end, err = f.driven.left()
				}
				if f.apart != "" && end.outcome != nil && end.failed == nil {
					end.worktree = cs.env.leftTree(ctx, f.apart)
				}
				return settle(end, err)
			},
			giveUp: func(_ context.Context, why error) []event.Data {
				if f.driven != nil {
					return settle(f.driven.left()) // what ended the goroutine was code of the child's
				}
				return settle(childEnd{}, why)
			},
		})
		cs.effects.pending[childID(id)].cancel = func() { stop(cs.life.whyStopped()) }
	})
}

// play has a child driven until it ends or parks. One that answers no call is
// left to the effect to drive, so that no other goroutine waits for it; what ends the
// goroutine of another must not end the observers of its call.
func (cs *children) play(ctx context.Context, a *machine.StartChild, f *pendingChild) (childEnd, error) {
	inside, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatch := context.AfterFunc(ctx, func() { leave(above(ctx)) })
	f.leave = func() { unwatch(); leave(nil) }
	run, end, err := cs.reach(ctx, inside, a, f.run)
	if run != nil && a.Call == nil {
		f.driven = run
		return childEnd{}, nil
	}
	defer f.leave()
	if run == nil {
		return end, err
	}
	go run.driver.drive()
	<-run.driver.result.done
	return run.left()
}

// reach takes a child, once its lease is free. It has no run where the child has
// ended or is not to go on, and where it was stopped before it was there. inside is
// the context of the run.
func (cs *children) reach(ctx, inside context.Context, a *machine.StartChild, child string) (*Run, childEnd, error) {
	for {
		switch cause := above(ctx); {
		case waitsForTime(ctx):
			return nil, childEnd{parked: &event.RunParked{Reason: event.ParkInterrupted, Detail: errAboveTime.Error()}}, nil
		case errors.Is(cause, ErrInterrupted):
			return nil, childEnd{}, nil
		case cause != nil:
			end, err := cs.end(ctx, child, cause.Error())
			return nil, end, err
		}
		if offered := cs.env.Children[a.Name]; offered.Func != nil {
			end, err := callFunc(ctx, offered, a.Input)
			return nil, end, err
		}
		run, end, err := cs.take(inside, a, child)
		if isHeld(err) {
			cs.awaitLease(ctx, err)
		} else if err == nil || inside.Err() == nil {
			return run, end, err
		}
	}
}

// callFunc does what a child is that is a function. One that was stopped before it
// was done is called again where its parent goes on.
func callFunc(ctx context.Context, offered Child, input json.RawMessage) (childEnd, error) {
	out, err := guard(func() (Output, error) {
		out, err := offered.Func(ctx, bytes.Clone(input))
		if err == nil && len(out.Result) > 0 && !json.Valid(out.Result) {
			err = errors.New("its result is not JSON")
		}
		return out, err
	}, toolPanic)
	o := event.Outcome{
		Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true, Completed: true,
		FinalOutput: out.Text, LastOutput: out.Text, Result: out.Result,
	}
	switch cause := above(ctx); {
	case err == nil:
	case waitsForTime(ctx), errors.Is(cause, ErrInterrupted):
		return childEnd{}, nil
	case cause != nil:
		o = event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled}
	default:
		o = event.Outcome{Status: event.StatusFailed, Reason: event.ReasonStepFailed, Error: &event.Failure{Class: "func", Message: err.Error()}}
	}
	return childEnd{outcome: &o, fn: true}, nil
}

// waitsForTime reports whether a run's children stop because it has no time
// left, and its owner is asked for more: they park with it.
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
	case cause == nil || errors.Is(cause, ErrInterrupted) || errors.As(cause, new(stopped)):
		return cause
	}
	return errAbove
}

// take makes a child or takes up one that was begun before, to be driven. One that has
// ended already, or cannot go on, has no run. What keeps a child from going on
// here may be mended, so that it parks; what it did is kept. What keeps one from
// being made would do so again, and is the call's error.
func (cs *children) take(ctx context.Context, a *machine.StartChild, child string) (*Run, childEnd, error) {
	e, kept := cs.engine, context.WithoutCancel(ctx)
	row, err := e.store.Run(kept, child)
	missing := errors.Is(err, journal.ErrNotFound)
	offered, known := cs.env.Children[a.Name]
	switch {
	case err != nil && !missing:
		return nil, childEnd{}, cs.log.failed(err)
	case err == nil && row.State == journal.Ended:
		end, err := e.endOf(kept, row)
		return nil, end, err
	case !known:
		gone := errors.New("the agent " + a.Name + " is not there any more")
		end, err := cs.end(ctx, child, gone.Error())
		end.failed = gone
		return nil, end, err
	case missing:
		return cs.make(ctx, a, child, offered)
	}
	var unbuilt error
	run, err := e.resume(ctx, child, func(started event.RunStarted) (env Env, err error) {
		env, unbuilt = guard(func() (Env, error) { return offered.Resume(child, started) }, toolPanic)
		return env, unbuilt
	}, cs)
	if err != nil && (unbuilt != nil || isUnreadable(err)) {
		return nil, childEnd{parked: &event.RunParked{Reason: event.ParkInterrupted, Detail: "it cannot go on: " + err.Error()}}, nil
	}
	return run, childEnd{}, err
}

// make starts a child that is not there yet.
func (cs *children) make(ctx context.Context, a *machine.StartChild, child string, offered Child) (*Run, childEnd, error) {
	if cs.run.depth >= cs.run.deepest() {
		err := &DepthError{Most: cs.run.deepest(), Path: append(cs.run.path(), a.Name)}
		return nil, childEnd{outcome: notStarted(event.ReasonMaxDepth, err), failed: err}, nil
	}
	var env Env
	started, err := guard(func() (started event.RunStarted, err error) {
		begin := offered.Begin
		if a.Worktree {
			if begin, err = cs.env.beginApart(ctx, a, offered); err != nil {
				return started, err
			}
		}
		started, env, err = begin(bytes.Clone(a.Input))
		return started, err
	}, toolPanic)
	if err == nil {
		started.Taint = a.Taint
		cs.run.place(&started, a.Step, offered.MaxDepth)
		if cs.run.traced.ID != "" || cs.engine.opts.traced() {
			started.Trace = cs.run.traceBelow(a.Call)
		}
		run, startErr := cs.engine.start(ctx, child, started, cs, env)
		if startErr == nil || ctx.Err() != nil || errors.As(startErr, new(*storeError)) {
			return run, childEnd{}, startErr
		}
		err = startErr
	}
	return nil, childEnd{outcome: notStarted(event.ReasonToolUnavailable, err), failed: err}, nil
}

// notStarted is the outcome of a child that never was.
func notStarted(reason event.Reason, err error) *event.Outcome {
	return &event.Outcome{
		Status: event.StatusFailed, Reason: reason, Error: &event.Failure{Class: "not_started", Message: err.Error()},
	}
}

// left is where a child stands whose driver is done.
func (r *Run) left() (childEnd, error) {
	end, err := leftAs(&r.driver.result.final, r.driver.result.err)
	if end.parked != nil {
		end.seq = r.driver.log.seq
	}
	return end, err
}

// leftAs is where a child stands that is not driven any more. What its
// environment or its last look at the inbox failed with changes nothing of that.
func leftAs(s *machine.State, err error) (childEnd, error) {
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

// childSettled is what a child's effect brings.
func (env *environment) childSettled(ctx context.Context, call *machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
	if p := end.parked; p != nil {
		parked := event.ChildParked{
			Child: child, Reason: p.Reason, Detail: p.Detail, CallIDs: p.CallIDs, Until: p.Until,
			Limit: p.Limit, ParentLimit: p.ParentLimit, LimitRun: p.LimitRun, AtLeast: p.AtLeast,
		}
		if call != nil {
			parked.CallID = call.CallID
		}
		return []event.Data{parked}
	}
	if end.outcome == nil {
		return nil
	}
	return env.childFinished(ctx, call, child, end, start)
}

func (env *environment) childFinished(ctx context.Context, call *machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
	if call == nil {
		return []event.Data{event.ChildFinished{Child: child, Outcome: *end.outcome, Taint: end.taint, Worktree: end.worktree, Func: end.fn}}
	}
	r, err := childResult(call.Tool, end)
	if end.outcome.Status != event.StatusCancelled {
		ctx = context.WithoutCancel(ctx) // it ended by itself, whatever has come since
	}
	result := env.toolResult(ctx, *call, r, err, 0)
	result.DurationMs = env.clock.awake().Sub(start).Milliseconds()
	outcome := *end.outcome
	outcome.FinalOutput, outcome.LastOutput = "", ""
	return []event.Data{event.ChildFinished{Child: child, CallID: call.CallID, Outcome: outcome}, env.record.Blobs.Detach(result)}
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

// settle comes before what a child's effect brought is journalled: first the
// account must say what the child used, and nothing may be kept for it that it
// will not ask for again.
func (cs *children) settle(work context.Context, s settlement) error {
	f := cs.active[s.effect]
	if f == nil {
		return nil
	}
	delete(cs.active, s.effect)
	if _, err := cs.budget.answer(f.run); err != nil {
		return err
	}
	if f.err != nil {
		return cs.log.failed(f.err)
	}
	for _, data := range s.data {
		if p, ok := data.(event.ChildParked); ok {
			cs.parked = append(cs.parked, parkedChild{ChildParked: p, seq: f.seq, raised: f.raised, news: true})
		}
	}
	return cs.budget.reconcile(work, f.run, slices.ContainsFunc(s.data, isFinished))
}

func isFinished(data event.Data) bool {
	_, ok := data.(event.ChildFinished)
	return ok
}

// attach says which run has started this one, nil for none.
func (d *driver) attach(above *children) {
	if above != nil {
		d.run.above, d.above.budget, d.above.mail = &above.run, above.budget, above.budget.mail
	}
}
