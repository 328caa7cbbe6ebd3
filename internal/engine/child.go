package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// ChildError is returned for a child that is resumed by itself: it continues
// only under its parent, because it draws from the parent's budget.
type ChildError struct {
	Run    string
	Parent string
	// Root is the root of the tree, which is the run to resume.
	Root string
}

// Error names the run to resume instead.
func (e *ChildError) Error() string {
	return fmt.Sprintf("run %s was started by run %s and requests from its budget, so it continues when run %s is resumed", e.Run, e.Parent, e.Root)
}

// errAbove ends a child whose parent was cancelled, and errAboveTime one whose
// parent has no time left.
var (
	errAbove     = errors.New("the run that started this one was cancelled")
	errAboveTime = errors.New("the run that started this one has no time left")
)

// DepthError is returned for a run that would make its tree too deep.
type DepthError struct {
	// Most is the allowed depth. Path holds the names of the runs from the root down
	// to the one that did not start.
	Most int
	Path []string
}

// Error names the limit and the runs.
func (e *DepthError) Error() string {
	return fmt.Sprintf("a tree of runs is at most %d deep here (max_depth): %s", e.Most, strings.Join(e.Path, " > "))
}

// stopped is the cause for which a parent ends a child.
type stopped struct{ reason string }

func (e stopped) Error() string { return e.reason }

// childEnd is how a child left: it ended, it parked, or it was stopped before it
// started.
type childEnd struct {
	outcome *event.Outcome
	parked  *event.RunParked
	taint   event.Taint
	// seq is the number of the last event of a parked child.
	seq int64
	// worktree is the worktree of the child, nil for none.
	worktree *event.Worktree
	// failed is why the agent could not start. withheld is the error of tool
	// middleware that did not call next.
	failed, withheld error
	// fn reports whether the child is a function.
	fn bool
}

// callFunc calls a child that is a function. If it is stopped before it returns,
// it is called again when its parent continues.
func callFunc(ctx context.Context, offered perform.Child, input json.RawMessage) childEnd {
	out, err := perform.Guard(func() (perform.Output, error) {
		out, err := offered.Func(ctx, bytes.Clone(input))
		if err == nil && len(out.Result) > 0 && !json.Valid(out.Result) {
			err = errors.New("its result is not JSON")
		}
		return out, err
	}, perform.ToolPanic)
	o := event.Outcome{
		Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true, Completed: true,
		FinalOutput: out.Text, LastOutput: out.Text, Result: out.Result,
	}
	switch cause := above(ctx); {
	case err == nil:
	case waitsForTime(ctx), errors.Is(cause, ErrInterrupted):
		return childEnd{}
	case cause != nil:
		o = event.Outcome{Status: event.StatusCancelled, Reason: event.ReasonCancelled}
	default:
		o = event.Outcome{Status: event.StatusFailed, Reason: event.ReasonStepFailed, Error: &event.Failure{Class: "func", Message: err.Error()}}
	}
	return childEnd{outcome: &o, fn: true}
}

// waitsForTime reports whether a run's children stop because the run reached a
// limit on its time that can be raised. They park with it.
func waitsForTime(ctx context.Context) bool {
	late, ok := errors.AsType[perform.OutOfTime](context.Cause(ctx))
	return ok && late.Asks
}

// above returns why a child is stopped as an error of its own, nil if it is not.
func above(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case waitsForTime(ctx):
		return ErrInterrupted
	case errors.As(cause, new(perform.OutOfTime)):
		return errAboveTime
	case cause == nil || errors.Is(cause, ErrInterrupted) || errors.As(cause, new(stopped)):
		return cause
	}
	return errAbove
}

// notStarted is the outcome of a child that did not start.
func notStarted(reason event.Reason, err error) *event.Outcome {
	return &event.Outcome{
		Status: event.StatusFailed, Reason: reason, Error: &event.Failure{Class: "not_started", Message: err.Error()},
	}
}

// left returns how a child left whose driver has finished.
func (r *Run) left() (childEnd, error) {
	end, err := leftAs(&r.driver.result.final, r.driver.result.err)
	if end.parked != nil {
		end.seq = r.driver.log.seq
	}
	return end, err
}

// leftAs returns how a child left that is no longer driven. An error of its
// environment or of its last look at the inbox changes nothing about that.
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

// childSettled returns the settlement of a child's effect.
func (c *core) childSettled(ctx context.Context, call *machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
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
	return c.childFinished(ctx, call, child, end, start)
}

func (c *core) childFinished(ctx context.Context, call *machine.RunTool, child string, end childEnd, start time.Time) []event.Data {
	if call == nil {
		return []event.Data{event.ChildFinished{Child: child, Outcome: *end.outcome, Taint: end.taint, Worktree: end.worktree, Func: end.fn}}
	}
	r, err := childResult(call.Tool, end)
	if w := end.worktree; w != nil {
		r.Output = strings.TrimLeft(r.Output+"\n\n", "\n") + "[the agent worked in the git worktree " + w.Path + "; what it changed is there]"
	}
	if end.outcome.Status != event.StatusCancelled {
		ctx = context.WithoutCancel(ctx) // it ended by itself; a later cancellation does not matter
	}
	result := c.env.ToolResult(ctx, *call, r, err, 0)
	result.DurationMs = c.env.Clock.Awake().Sub(start).Milliseconds()
	outcome := *end.outcome
	outcome.FinalOutput, outcome.LastOutput = "", ""
	return []event.Data{event.ChildFinished{Child: child, CallID: call.CallID, Outcome: outcome, Worktree: end.worktree}, c.env.Record.Blobs.Detach(result)}
}

// childResult is a child's end as a tool result: its final output, or an error
// that says why there is none and what to do.
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

// attach sets the run that started this one, nil for none.
func (d *driver) attach(above *children) {
	d.run.turns = drive.NewTurns(d.log.store, d.run.id)
	if above != nil {
		d.run.turns, d.life.parking = above.run.turns, above.life.parking
		d.run.above, d.above.budget, d.above.mail = &above.run, above.budget, above.budget.mail
	}
}

// childPlay drives a child until it leaves. The result is empty for a child that
// was interrupted before it started.
type childPlay func(context.Context) (childEnd, error)

// childObserver plays a child inside the engine's observers, for which it is a
// call like any other. What becomes of the child does not depend on their
// result.
type childObserver func(ctx context.Context, call machine.RunTool, child string, play childPlay) (childEnd, error)

var errWithheld = errors.New("an observer did not hand the call on")

// observeStart plays a child that continues. If an observer does not call next,
// the child ends, and the observer's error is the call's result.
func (cs *children) observeStart(ctx context.Context, call machine.RunTool, child string, play childPlay) (childEnd, error) {
	end, handed, err := cs.handChild(ctx, call, play)
	switch {
	case !handed && ctx.Err() != nil:
		end, err = play(ctx)
	case !handed:
		if err == nil {
			err = errWithheld
		}
		return cs.withhold(ctx, child, err)
	}
	if err == nil && end == (childEnd{}) && !errors.Is(context.Cause(ctx), ErrInterrupted) {
		err = fmt.Errorf("engine: run %s left without having ended or parked", child)
	}
	return end, err
}

// observeEnd ends a child, even if an observer does not call next.
func (cs *children) observeEnd(ctx context.Context, call machine.RunTool, _ string, play childPlay) (childEnd, error) {
	end, handed, err := cs.handChild(ctx, call, play)
	if !handed {
		return play(ctx)
	}
	return end, err
}

// handChild runs a child's call inside the observers and reports whether they
// called next. If not, the error is theirs, and a later call of next does
// nothing.
func (c *core) handChild(ctx context.Context, call machine.RunTool, play childPlay) (end childEnd, handed bool, failure error) {
	var taken atomic.Bool
	left := make(chan struct{})
	_, err := perform.Guard(func() (tool.Result, error) {
		return c.env.ObserveTool(ctx, call, func(ctx context.Context) (tool.Result, error) {
			if taken.Swap(true) {
				return tool.Result{}, errWithheld
			}
			defer close(left)
			if end, failure = play(ctx); failure != nil {
				return tool.Result{}, failure
			}
			return childResult(call.Tool, end)
		})
	}, perform.ToolPanic)
	if !taken.Swap(true) {
		return childEnd{}, false, err
	}
	<-left
	return end, true, failure
}

// withhold ends a child whose call an observer withheld.
func (cs *children) withhold(ctx context.Context, child string, why error) (childEnd, error) {
	end, err := cs.end(ctx, child, "the call that started this run was not handed on")
	end.withheld = why
	return end, err
}

// worktreeStep returns the name of the worktree that a child works in: that of its
// step, or of the call that it answers; empty for none.
func (c *core) worktreeStep(a *machine.StartChild) string {
	switch {
	case a.Worktree:
		return a.Step
	case c.env.Children[a.Name].Isolated:
		return a.ID
	}
	return ""
}

// beginApart makes the worktree of a child, and returns the function that begins
// the child there.
func (c *core) beginApart(ctx context.Context, a *machine.StartChild, offered perform.Child) (func(json.RawMessage) (event.RunStarted, perform.Env, error), error) {
	if offered.BeginIn == nil {
		return nil, errors.New("the agent " + a.Name + " works in no other directory than its own")
	}
	dir, err := c.env.MakeTree(ctx, c.worktreeStep(a))
	return func(args json.RawMessage) (event.RunStarted, perform.Env, error) { return offered.BeginIn(dir, args) }, err
}
