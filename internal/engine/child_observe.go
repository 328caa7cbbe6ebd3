package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

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
