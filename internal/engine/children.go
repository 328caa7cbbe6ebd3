package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// children holds the runs that this run started.
type children struct {
	*core
	budget *childBudget
	// active are those that effects drive or end; parked are those that parked while
	// this run continues; receivers are those that received a command.
	active    map[string]*pendingChild
	parked    []parkedChild
	receivers receivers
}

// pendingChild is a child under way.
type pendingChild struct {
	run string
	// stop ends the child with a cause.
	stop context.CancelCauseFunc
	// end is how the child left, and err why that is unknown. Both may be read once the
	// effect has settled. answer, if not nil, is called with end once it is on disk.
	end    childEnd
	err    error
	answer func(childEnd)
	// driven is the child's run if the effect's own goroutine drives it, and leave
	// releases its context.
	driven *Run
	leave  func()
	// worktree is the step whose worktree the child works in, empty for none.
	worktree string
	// raised reports whether a limit of this run has changed since it last refused
	// the child.
	raised bool
}

// childID is the id of a child's effect.
func childID(action string) string { return "child " + action }

// begin journals the intent of a child and queues its start, or queues a child
// that was started before. A child under way is ignored.
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
	begun := a // a captured variable moves to the heap, even if the child is under way
	cs.queue(a.ID, a.Call, child, cs.observeStart, func(ctx context.Context, f *pendingChild) (childEnd, error) {
		f.worktree = cs.worktreeStep(&begun)
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

// cancelChild ends a child that is under way, or queues the end of one that is
// not.
func (cs *children) cancelChild(a machine.CancelChild) {
	switch f := cs.active[childID(a.ID)]; {
	case f != nil && f.stop != nil && !cs.life.cancelled:
		f.stop(stopped{a.Reason})
	case f == nil:
		// The reason for which it parked does not matter any more.
		cs.parked = slices.DeleteFunc(cs.parked, func(p parkedChild) bool { return p.Child == a.Child })
		cs.queue(a.ID, a.Call, a.Child, cs.observeEnd, func(ctx context.Context, _ *pendingChild) (childEnd, error) {
			return cs.end(ctx, a.Child, a.Reason)
		})
	}
}

// queue queues the effect of a child. A child that answers a call is played
// inside the observers.
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
	cs.effects.add(func(within context.Context) {
		start := cs.env.Clock.Awake()
		var end childEnd
		var err error
		settle := func(ctx context.Context, end childEnd, err error) []event.Data {
			if f.end = end; err != nil {
				f.err = err
				return nil
			}
			return cs.childSettled(ctx, call, child, end, start)
		}
		f.stop = cs.effects.launch(within, effect{
			id: childID(id), why: cs.life.whyStopped,
			before: []func(context.Context){
				func(ctx context.Context) { end, err = play(ctx) },
				func(context.Context) {
					if f.driven != nil {
						f.driven.driver.drive()
					}
				},
			},
			Effect: perform.Effect{Unhurried: true, Work: work{do: func(ctx context.Context) []event.Data {
				if f.driven != nil {
					f.leave()
					end, err = f.driven.left()
				}
				if f.worktree != "" && end.outcome != nil && end.failed == nil {
					end.worktree = cs.env.LeftTree(ctx, f.worktree)
				}
				return settle(ctx, end, err)
			}, giveUp: func(ctx context.Context, why error) []event.Data {
				if f.driven != nil {
					end, err := f.driven.left() // code of the child ended the goroutine
					return settle(ctx, end, err)
				}
				return settle(ctx, childEnd{}, why)
			}}},
		}).Stop
	})
}

// play drives a child until it ends or parks. A child that answers no call is
// left for the effect's goroutine to drive, so that no other goroutine waits for
// it. Code that ends the goroutine of a child must not end the observers of its
// call.
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

// reach takes a child once its lease is free. The returned run is nil if the
// child has ended, must not continue, or was stopped before it started. inside
// is the context of the run.
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
			return nil, callFunc(ctx, offered, a.Input), nil
		}
		run, end, err := cs.take(inside, a, child)
		if run != nil {
			run.driver.run.as = drive.StartedAs{ID: a.ID, Agent: a.Name, Step: a.Step}
		}
		if isHeld(err) {
			cs.awaitLease(ctx, err)
		} else if err == nil || inside.Err() == nil {
			return run, end, err
		}
	}
}

// take makes a child, or takes a child that was started before, in order to
// drive it. The returned run is nil if the child has ended or cannot continue. A
// child that cannot continue here parks, because the cause may be fixed and its
// work is kept. An error while making a child would repeat, so it is the call's
// error.
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
	run, err := e.resume(ctx, child, func(started event.RunStarted) (env perform.Env, err error) {
		env, unbuilt = perform.Guard(func() (perform.Env, error) { return offered.Resume(child, started) }, perform.ToolPanic)
		return env, unbuilt
	}, cs)
	if err != nil && (unbuilt != nil || isUnreadable(err)) {
		return nil, childEnd{parked: &event.RunParked{Reason: event.ParkInterrupted, Detail: "it cannot go on: " + err.Error()}}, nil
	}
	return run, childEnd{}, err
}

// make starts a new child.
func (cs *children) make(ctx context.Context, a *machine.StartChild, child string, offered perform.Child) (*Run, childEnd, error) {
	if cs.run.depth >= cs.run.deepest() {
		err := &DepthError{Most: cs.run.deepest(), Path: append(cs.run.path(), a.Name)}
		return nil, childEnd{outcome: notStarted(event.ReasonMaxDepth, err), failed: err}, nil
	}
	var env perform.Env
	started, err := perform.Guard(func() (started event.RunStarted, err error) {
		begin := offered.Begin
		if cs.worktreeStep(a) != "" {
			if begin, err = cs.beginApart(ctx, a, offered); err != nil {
				return started, err
			}
		}
		started, env, err = begin(bytes.Clone(a.Input))
		return started, err
	}, perform.ToolPanic)
	if err == nil {
		started.Taint = a.Taint
		cs.run.setPlace(&started, a.Step, offered.MaxDepth)
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

// settle prepares the settlement of a child's effect: first the account must
// contain what the child used, and must not reserve anything that the child does
// not request again.
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
	if f.answer != nil {
		cs.effects.add(func(context.Context) { f.answer(f.end) })
	}
	for _, data := range s.data {
		if p, ok := data.(event.ChildParked); ok {
			cs.parked = append(cs.parked, parkedChild{ChildParked: p, seq: f.end.seq, raised: f.raised, news: true})
		}
	}
	return cs.budget.reconcile(work, f.run, slices.ContainsFunc(s.data, func(data event.Data) bool {
		_, finished := data.(event.ChildFinished)
		return finished
	}))
}
