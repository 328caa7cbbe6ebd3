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
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
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
	// Apart says that each run works in a worktree of its own, see [Env.Worktrees].
	Apart bool
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

// stopped is why a child ends that its parent does not want any more.
type stopped struct{ reason string }

func (e stopped) Error() string { return e.reason }

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
	if w := end.worktree; w != nil {
		r.Output = strings.TrimLeft(r.Output+"\n\n", "\n") + "[the agent worked in the git worktree " + w.Path + "; what it changed is there]"
	}
	if end.outcome.Status != event.StatusCancelled {
		ctx = context.WithoutCancel(ctx) // it ended by itself, whatever has come since
	}
	result := env.toolResult(ctx, *call, r, err, 0)
	result.DurationMs = env.clock.awake().Sub(start).Milliseconds()
	outcome := *end.outcome
	outcome.FinalOutput, outcome.LastOutput = "", ""
	return []event.Data{event.ChildFinished{Child: child, CallID: call.CallID, Outcome: outcome, Worktree: end.worktree}, env.record.Blobs.Detach(result)}
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

// attach says which run has started this one, nil for none.
func (d *driver) attach(above *children) {
	d.run.turns = &turns{store: d.log.store, root: d.run.id}
	if above != nil {
		d.run.turns = above.run.turns
		d.run.above, d.above.budget, d.above.mail = &above.run, above.budget, above.budget.mail
	}
}

// childPlay brings a child to where it leaves. It says nothing of one that an
// interruption stopped before it was there.
type childPlay func(context.Context) (childEnd, error)

// childObserver plays a child inside the engine's observers, to which it is a
// call like any other. What becomes of the child counts, whatever they make of
// it.
type childObserver func(ctx context.Context, call machine.RunTool, child string, play childPlay) (childEnd, error)

var errWithheld = errors.New("an observer did not hand the call on")

// observeStart plays a child that is to go on. One that the observers did not
// hand on ends, and what they answered is the call's result, as it is a tool's.
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

// observeEnd ends a child, also where the observers did not hand that on.
func (cs *children) observeEnd(ctx context.Context, call machine.RunTool, _ string, play childPlay) (childEnd, error) {
	end, handed, err := cs.env.handChild(ctx, call, play)
	if !handed {
		return play(ctx)
	}
	return end, err
}

// handChild gives the observers a child's call to hand on, and says whether they
// did. If not, the error is theirs, and nobody can hand it on any more.
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

// withhold ends a child whose call was not handed on.
func (cs *children) withhold(ctx context.Context, child string, why error) (childEnd, error) {
	end, err := cs.end(ctx, child, "the call that started this run was not handed on")
	end.withheld = why
	return end, err
}
