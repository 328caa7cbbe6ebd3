package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

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
		f.apart = cs.env.apart(&begun)
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
		if run != nil {
			run.driver.run.as = asStarted(a)
		}
		if isHeld(err) {
			cs.awaitLease(ctx, err)
		} else if err == nil || inside.Err() == nil {
			return run, end, err
		}
	}
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
		if cs.env.apart(a) != "" {
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
