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
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// Child is what a tool or a step may start: a run, or a function of the program.
// Begin and Resume are called on the goroutine of a call, possibly of several
// calls at once.
type Child struct {
	// Begin returns the first event and the environment of a new child.
	Begin func(args json.RawMessage) (event.RunStarted, Env, error)
	// BeginIn is Begin with another workspace; nil if the child can only have its
	// own.
	BeginIn func(dir string, args json.RawMessage) (event.RunStarted, Env, error)
	// Resume returns the environment of a run that was started before.
	Resume func(run string, started event.RunStarted) (Env, error)
	// Secrets are those of both environments. They are removed from commands to the
	// child, even while it is parked and no process drives it; nil means none.
	Secrets *secret.Redactor
	// Func does the work instead of a run. It has no journal: its output is in the
	// parent's journal, and after a crash or an interruption it is called again. It
	// must return soon after ctx ends, and is called from several goroutines at
	// once.
	Func func(ctx context.Context, input json.RawMessage) (Output, error)
	// MaxDepth is how many levels of runs may be below the run that offers the
	// child, 0 for as many as the tree allows.
	MaxDepth int
	// Apart reports whether each run works in a worktree of its own, see
	// [Env.Worktrees].
	Apart bool
}

// Output is a function's output: a text, and a result as JSON, nil for none.
type Output struct {
	Text   string
	Result json.RawMessage
}

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

// waitsForTime reports whether a run's children stop because the run reached a
// limit on its time that can be raised. They park with it.
func waitsForTime(ctx context.Context) bool {
	late, ok := errors.AsType[outOfTime](context.Cause(ctx))
	return ok && late.asks
}

// above returns why a child is stopped as an error of its own, nil if it is not.
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
	if w := end.worktree; w != nil {
		r.Output = strings.TrimLeft(r.Output+"\n\n", "\n") + "[the agent worked in the git worktree " + w.Path + "; what it changed is there]"
	}
	if end.outcome.Status != event.StatusCancelled {
		ctx = context.WithoutCancel(ctx) // it ended by itself; a later cancellation does not matter
	}
	result := env.toolResult(ctx, *call, r, err, 0)
	result.DurationMs = env.clock.awake().Sub(start).Milliseconds()
	outcome := *end.outcome
	outcome.FinalOutput, outcome.LastOutput = "", ""
	return []event.Data{event.ChildFinished{Child: child, CallID: call.CallID, Outcome: outcome, Worktree: end.worktree}, env.record.Blobs.Detach(result)}
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
		d.run.turns = above.run.turns
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
	end, handed, err := cs.env.handChild(ctx, call, play)
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
	end, handed, err := cs.env.handChild(ctx, call, play)
	if !handed {
		return play(ctx)
	}
	return end, err
}

// handChild runs a child's call inside the observers and reports whether they
// called next. If not, the error is theirs, and a later call of next does
// nothing.
func (env *environment) handChild(ctx context.Context, call machine.RunTool, play childPlay) (end childEnd, handed bool, failure error) {
	var taken atomic.Bool
	left := make(chan struct{})
	_, err := guard(func() (tool.Result, error) {
		return env.observeTool(ctx, call, func(ctx context.Context) (tool.Result, error) {
			if taken.Swap(true) {
				return tool.Result{}, errWithheld
			}
			defer close(left)
			if end, failure = play(ctx); failure != nil {
				return tool.Result{}, failure
			}
			return childResult(call.Tool, end)
		})
	}, toolPanic)
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
