package engine

import (
	"context"
	"errors"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/journal"
)

// parentRun is the run above, which started this one and from whose budget it draws.
type parentRun struct {
	*core
	// budget and mail are those of the run above, nil where nobody started this one.
	budget *childBudget
	mail   *mail
	// reserving says that it is being asked for a part of its budget, and toldWaiting
	// what it was told last: that this run waits for a person.
	reserving, toldWaiting bool
}

// put says something to the run above.
func (p *parentRun) put(x *childRequest) { p.budget.requests.put(x) }

// reserve asks the run above for a part of its budget, once. A call whose time
// has not come sets the alarm instead.
func (p *parentRun) reserve(a machine.Reserve) error {
	switch {
	case a.NotBefore.After(p.env.clock.now()):
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

// dismiss stops asking the run above where this one does not go on.
func (p *parentRun) dismiss() {
	if p.reserving && p.machine.State().Phase != machine.Running {
		p.effects.stop(reserveEffect)
	}
}

// forget notes that an effect was settled, which may be the one that asked.
func (p *parentRun) forget(effect string) {
	if effect == reserveEffect {
		p.reserving = false
	}
}

// reserveEffect is the effect that waits for the answer of the run above.
const reserveEffect = "reserve"

// await settles with the answer, or with nothing when the run stops it:
// what was reserved above meanwhile is given back when the run has left.
func (p *parentRun) await(work context.Context, a machine.Reserve) {
	ctx, cancel := p.effects.until(work, 0)
	stopped := func(ctx context.Context) []event.Data {
		late, ok := errors.AsType[outOfTime](context.Cause(ctx))
		if !ok {
			return nil
		}
		return []event.Data{event.BudgetRefused{ID: a.ID, Setting: late.setting, Detail: late.Error()}}
	}
	p.effects.launch(ctx, cancel, effect{
		id: reserveEffect,
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
	})
}

// withdraw takes back what the run above is being asked for a child that has
// left, or asks for nothing any more.
func (p *parentRun) withdraw(x *childRequest) {
	switch {
	case x.said != nil:
		p.giveBack(x.said)
	case x.passed:
		p.put(&childRequest{child: p.run.id, withdrawn: tree.ReservationID(x.child, x.ask.ID)})
	}
	x.passed, x.asked, x.said = false, budget.Amount{}, nil
}

// giveBack gives back what the run above has set aside and nobody needs.
func (p *parentRun) giveBack(said event.Data) {
	if r, ok := said.(event.BudgetReserved); ok {
		p.put(&childRequest{child: p.run.id, used: &event.BudgetCommitted{ID: r.ID, Run: p.run.id}})
	}
}

// tellWaiting tells the run above when this one begins to wait for a person, and
// when it goes on. That it parks or ends the run above sees by itself.
func (p *parentRun) tellWaiting() {
	if p.budget == nil {
		return
	}
	s := p.machine.State()
	if s.Phase != machine.Running || s.Asking == p.toldWaiting {
		return
	}
	p.toldWaiting = s.Asking
	p.put(&childRequest{child: p.run.id, waiting: &s.Asking})
}

// tellUsed tells the run above what calls used, its own and those of the runs
// below, and which messages have come, once that is on disk here.
func (p *parentRun) tellUsed() {
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

// takeMail journals the messages that lie ready for this run. Of one that it has
// the run above has not been told yet, perhaps because it died.
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

// confirm tells the run above that a message is on disk here.
func (p *parentRun) confirm(id string) {
	if id != "" {
		p.put(&childRequest{child: p.run.id, read: id})
	}
}

// poster gives a call what hands its message to the run above, nil where that
// carries none.
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
			answer: func(told string) { answer <- told },
		}})
		select {
		case told := <-answer:
			return told, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
