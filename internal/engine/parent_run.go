package engine

import (
	"context"
	"errors"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/journal"
)

// parentRun is the parent of this run, from whose budget the run draws.
type parentRun struct {
	*core
	// budget and mail are the parent's, nil for a root.
	budget *childBudget
	mail   *mail
	// reserving reports whether a request for a part of the budget is open.
	// reportedWaiting is the last notice to the parent: whether this run waits for a
	// person.
	reserving, reportedWaiting bool
}

// put sends a request to the parent.
func (p *parentRun) put(x *childRequest) { p.budget.requests.put(x) }

// reserve requests a part of the parent's budget, once. A call whose time has
// not come sets the alarm instead.
func (p *parentRun) reserve(a machine.Reserve) error {
	switch {
	case a.NotBefore.After(p.env.Clock.Now()):
		p.alarm.set(a.NotBefore)
		p.alarm.waiting = journal.WaitRetry
		return nil
	case p.reserving:
		return nil
	case p.budget == nil:
		return errors.New("engine: run " + p.run.id + ": it has a parent, and is not driven by that")
	}
	p.reserving = true
	p.effects.add(func(work context.Context) { p.await(work, a) })
	return nil
}

// dismiss withdraws the request if this run does not continue.
func (p *parentRun) dismiss() {
	if p.reserving && p.machine.State().Phase != machine.Running {
		p.effects.stop(reserveEffect)
	}
}

// forget notes that an effect has settled, which may be the request.
func (p *parentRun) forget(effect string) {
	if effect == reserveEffect {
		p.reserving = false
	}
}

// reserveEffect is the effect that waits for the parent's reply.
const reserveEffect = "reserve"

// await settles with the reply, or with nothing if the run stops it. A
// reservation that the parent makes meanwhile is given back when the run has
// left.
func (p *parentRun) await(within context.Context, a machine.Reserve) {
	stopped := func(ctx context.Context) []event.Data {
		late, ok := errors.AsType[perform.OutOfTime](context.Cause(ctx))
		if !ok {
			return nil
		}
		return []event.Data{event.BudgetRefused{ID: a.ID, Setting: late.Setting, Detail: late.Error()}}
	}
	p.effects.launch(within, effect{id: reserveEffect, Effect: perform.Effect{Work: work{
		do: func(ctx context.Context) []event.Data {
			answer := make(chan event.Data, 1)
			p.put(&childRequest{child: p.run.id, ask: &a, answer: func(said event.Data) { answer <- said }})
			select {
			case data := <-answer:
				return []event.Data{data}
			case <-ctx.Done():
				return stopped(ctx)
			}
		},
		giveUp: func(ctx context.Context, _ error) []event.Data { return stopped(ctx) },
	}}})
}

// withdraw withdraws a request to the parent on behalf of a child that has left
// or needs nothing any more.
func (p *parentRun) withdraw(x *childRequest) {
	switch {
	case x.reply != nil:
		p.giveBack(x.reply)
	case x.forwarded:
		p.put(&childRequest{child: p.run.id, withdrawn: tree.ReservationID(x.child, x.ask.ID)})
	}
	x.forwarded, x.amount, x.reply = false, budget.Amount{}, nil
}

// giveBack gives back a reservation of the parent's that is not needed.
func (p *parentRun) giveBack(said event.Data) {
	if r, ok := said.(event.BudgetReserved); ok {
		p.put(&childRequest{child: p.run.id, used: &event.BudgetCommitted{ID: r.ID, Run: p.run.id}})
	}
}

// reportWaiting notifies the parent when this run begins to wait for a person, and
// when it continues. The parent sees by itself when the run parks or ends.
func (p *parentRun) reportWaiting() {
	if p.budget == nil {
		return
	}
	s := p.machine.State()
	if s.Phase != machine.Running || s.Asking == p.reportedWaiting {
		return
	}
	p.reportedWaiting = s.Asking
	p.put(&childRequest{child: p.run.id, waiting: &s.Asking})
}

// reportUsed reports to the parent what calls used, in this run and below it, and
// which messages arrived, once that is on disk here.
func (p *parentRun) reportUsed() {
	if p.budget == nil {
		return
	}
	for i := range p.log.staged {
		switch x := p.log.staged[i].event.Data.(type) {
		case event.BudgetCommitted:
			x.ID, x.Run = tree.ReservationID(x.Run, x.ID), p.run.id
			p.put(&childRequest{child: p.run.id, used: &x, last: p.finished()})
		case event.InputReceived:
			p.confirm(x.MessageID)
		}
	}
}

// takeMail journals the messages for this run. If the run has a message already,
// the parent does not know that yet, perhaps because of a crash.
func (p *parentRun) takeMail() error {
	if p.budget == nil || p.machine.State().Phase == machine.Ended {
		return nil
	}
	for _, said := range p.mail.take(p.run.id) {
		if p.log.messages[said.MessageID] {
			p.confirm(said.MessageID)
			continue
		}
		if err := p.stage(said); err != nil {
			return err
		}
	}
	return nil
}

// confirm reports to the parent that a message is on disk here.
func (p *parentRun) confirm(id string) {
	if id != "" {
		p.put(&childRequest{child: p.run.id, read: id})
	}
}

// poster returns the function by which a call sends a message to the parent, nil
// if the parent carries none.
func (p *parentRun) poster(callID string) func(ctx context.Context, to, text string, kind event.MessageKind) (string, error) {
	if p.budget == nil {
		return nil
	}
	if _, carries := p.budget.machine.(machine.Messenger); !carries {
		return nil
	}
	taint := p.machine.State().Taint
	return func(ctx context.Context, to, text string, kind event.MessageKind) (string, error) {
		answer := make(chan string, 1)
		p.put(&childRequest{child: p.run.id, post: &posted{
			Post:   machine.Post{ID: callID, To: to, Text: text, Kind: kind, Taint: taint},
			answer: func(reply string) { answer <- reply },
		}})
		select {
		case reply := <-answer:
			return reply, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
