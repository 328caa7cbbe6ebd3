package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// startFor returns the function by which the tool of a call asks for a child: it starts a
// run of an agent and waits until that ends. The end of ctx ends the child.
func (cs *children) startFor(callID string) func(ctx context.Context, name string, input json.RawMessage) (event.Outcome, error) {
	return func(ctx context.Context, name string, input json.RawMessage) (event.Outcome, error) {
		if _, offered := cs.env.Children[name]; !offered {
			return event.Outcome{}, errors.New("the run offers no agent " + name)
		}
		ended := make(chan childEnd, 1)
		cs.effects.report(settlement{then: func() error {
			if cs.life.leaving() || cs.machine.State().Phase != machine.Running || !cs.log.calls.UnderWay(callID) {
				ended <- childEnd{failed: errNotUnderWay}
				return nil
			}
			return cs.beginAsked(ctx, callID, name, input, func(end childEnd) { ended <- end })
		}})
		select {
		case end := <-ended:
			return end.reply()
		case <-ctx.Done():
			return event.Outcome{}, context.Cause(ctx)
		}
	}
}

var errNotUnderWay = errors.New("the call does not wait for an answer any more")

// beginAsked journals the intent of a child that the tool of a call asked for, and
// queues its start. answer is called once the child's end is on disk.
func (cs *children) beginAsked(ctx context.Context, callID, name string, input json.RawMessage, answer func(childEnd)) error {
	child := cs.engine.opts.NewID()
	a := machine.StartChild{ID: child, Child: child, Kind: agent.Kind, Name: name, Input: input, Taint: cs.machine.State().Taint}
	a.Taint = a.Taint.With(event.Taint{Untrusted: &event.TaintSource{Run: cs.run.id, CallID: callID}})
	if err := cs.stage(event.ChildStarted{Child: child, Kind: a.Kind, Name: name, During: callID}); err != nil {
		return err
	}
	cs.queue(a.ID, nil, child, nil, func(inner context.Context, f *pendingChild) (childEnd, error) {
		context.AfterFunc(ctx, func() { f.stop(stopped{"the call that it was for has ended"}) })
		return cs.play(inner, &a, f)
	})
	cs.active[childID(a.ID)].answer = answer
	return nil
}

// reply returns the outcome of a child that a tool asked for. A child that parked has
// none, because nothing waits for a person there; its run ends it.
func (end childEnd) reply() (event.Outcome, error) {
	switch {
	case end.failed != nil:
		return event.Outcome{}, end.failed
	case end.parked != nil:
		return event.Outcome{}, errors.New("the run that was to answer has parked: " + string(end.parked.Reason) + " " + end.parked.Detail)
	case end.outcome == nil:
		return event.Outcome{}, errNotUnderWay
	}
	return *end.outcome, nil
}

// links connects a call to its own run.
func (cs *calls) links(callID string) perform.Links {
	return perform.Links{
		Note: cs.effects.note, Post: cs.above.poster(callID), Seen: cs.log.files.Digest, Run: cs.children.startFor(callID), Sampled: &cs.log.sampled,
	}
}
