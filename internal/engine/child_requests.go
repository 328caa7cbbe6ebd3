package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// childBudget is what the children of a run draw from its budget.
type childBudget struct {
	*core
	children *children
	mail     *mail
	above    *parentRun
	// requests are the children's requests, nil for a run that offers no agents.
	// waiting are those that wait for room, and granted delivers replies after the
	// next commit.
	requests *childRequests
	waiting  []*childRequest
	granted  []func()
}

// childRequests is the queue of the children's requests. Adding to it never
// blocks, and the holder of the parent's lock answers, so neither a child nor
// its parent can block the other.
type childRequests struct {
	mu       sync.Mutex
	requests []*childRequest
	came     chan struct{}
}

// childRequest is a message from a child to its parent: a request for a
// reservation, its withdrawal, a report of usage, or a notice that the child
// waits for a person. A child reports before it requests again. If the parent
// forwards the request, it is also the message to the run above the parent.
type childRequest struct {
	child   string
	waiting *bool
	used    *event.BudgetCommitted
	// last reports whether the child has ended with this message, which is then
	// journalled together with the end.
	last bool

	ask *machine.Reserve
	// answer receives the reply to a request; it does not block.
	answer func(event.Data)
	// forwarded reports whether the request was forwarded to the run above; amount is
	// the amount requested there, and reply the answer.
	forwarded bool
	amount    budget.Amount
	reply     event.Data
	// withdrawn names a request that is withdrawn, and answered one that the run
	// above has answered.
	withdrawn string
	answered  *childRequest
	// post is a message for other children, and read names one that the child has
	// journalled.
	post *posted
	read string
}

func (f *childRequests) put(x *childRequest) {
	f.mu.Lock()
	f.requests = append(f.requests, x)
	f.mu.Unlock()
	if !x.last {
		signal(f.came)
	}
}

// take removes and returns the pending requests, except the final ones of
// children other than left. It is safe on a nil receiver.
func (f *childRequests) take(left string) (taken []*childRequest) {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*childRequest
	for _, x := range f.requests {
		if x.last && x.child != left {
			kept = append(kept, x)
		} else {
			taken = append(taken, x)
		}
	}
	f.requests = kept
	return taken
}

// drawn returns the channel that wakes a driver for its children's requests, nil
// for a run without children.
func (b *childBudget) drawn() <-chan struct{} {
	if b.requests == nil {
		return nil
	}
	return b.requests.came
}

// answer journals the children's usage and grants, and delivers the grants after
// the commit. A request that has room only after siblings' calls have settled
// waits. A request of a child that has left is ignored.
func (b *childBudget) answer(left string) (progress bool, err error) {
	if b.requests == nil {
		return false, nil
	}
	// Usage comes first, so that it makes room for the request that has waited
	// longest.
	for _, x := range b.requests.take(left) {
		staged, err := b.take(x)
		if err != nil {
			return false, err
		}
		progress = progress || staged
	}
	waiting := b.waiting[:0]
	for _, x := range b.waiting {
		if x.child == left {
			b.above.withdraw(x)
			continue
		}
		staged, done, err := b.grant(x)
		if err != nil {
			return false, err
		}
		if !done {
			waiting = append(waiting, x)
		}
		progress = progress || staged
	}
	clear(b.waiting[len(waiting):])
	b.waiting = waiting
	return progress, nil
}

// take handles a message of a child or of the run above.
func (b *childBudget) take(x *childRequest) (staged bool, err error) {
	switch {
	case x.ask != nil:
		b.waiting = append(b.waiting, x)
	case x.withdrawn != "":
		i := slices.IndexFunc(b.waiting, func(y *childRequest) bool { return y.child == x.child && y.ask.ID == x.withdrawn })
		if i >= 0 {
			b.above.withdraw(b.waiting[i])
			b.waiting = slices.Delete(b.waiting, i, i+1)
		}
	case x.post != nil:
		reply, carried, err := b.mail.carry(x.child, x.post.Post)
		if carried {
			b.granted = append(b.granted, func() { x.post.answer(reply) })
		}
		return carried, err
	case x.read != "":
		return b.mail.noteDelivered(x.child, x.read)
	case x.answered != nil:
		if slices.Contains(b.waiting, x.answered) {
			x.answered.reply = x.reply
		} else {
			b.above.giveBack(x.reply)
		}
	default:
		return b.note(x)
	}
	return false, nil
}

// note journals a child's report. A waiting notice is ignored once the call has
// settled.
func (b *childBudget) note(x *childRequest) (staged bool, err error) {
	if x.waiting == nil {
		return true, b.stage(*x.used)
	}
	if b.machine.State().Phase != machine.Running {
		return false, nil
	}
	c, open := b.log.children.Of(x.child)
	if !open {
		return false, nil
	}
	return true, b.stage(event.ChildWaiting{Child: x.child, CallID: c.Call, Waiting: *x.waiting})
}

// grant answers a request, once the runs above have made the reservation, too. A
// run that is shutting down grants nothing; its children are shutting down too.
func (b *childBudget) grant(x *childRequest) (progress, done bool, err error) {
	funder, ok := b.machine.(machine.Funder)
	if !ok || b.life.leaving() || b.machine.State().Phase != machine.Running || x.forwarded && x.reply == nil {
		return false, false, nil
	}
	open := slices.ContainsFunc(funder.Drawn(x.child), func(r event.BudgetReserved) bool { return r.ID == x.ask.ID })
	if open { // it was granted to a driver that has left, and is about to be given back
		return false, false, nil
	}
	call := x.ask.Call
	switch said := x.reply.(type) {
	case event.BudgetRefused:
		b.refuse(x, event.BudgetRefused{
			ID: x.ask.ID, Setting: said.Setting, Detail: said.Detail, Ask: said.Ask, AtLeast: said.AtLeast, Run: cmp.Or(said.Run, b.above.budget.run.id),
		})
		return false, true, nil
	case event.BudgetReserved:
		call.Output = said.Output
	}
	g := funder.Admit(call, b.forwardedAmount(x))
	switch {
	case g.Refusal.Setting != "":
		b.above.withdraw(x)
		if g.Refusal.Wait {
			return false, false, nil
		}
		b.refuse(x, event.BudgetRefused{ID: x.ask.ID, Setting: g.Refusal.Setting, Detail: g.Refusal.Detail(), Ask: g.Ask, AtLeast: g.AtLeast})
		return false, true, nil
	case b.above.budget != nil && x.reply == nil:
		b.forward(x, g.Amount)
		return false, false, nil
	case x.forwarded && g.Amount.Output != call.Output: // there is less room here now
		b.above.withdraw(x)
		return true, false, nil
	}
	r := event.BudgetReserved{ID: x.ask.ID, USD: g.Amount.USD, Input: g.Amount.Input, Output: g.Amount.Output, Run: x.child}
	if err := b.stage(r); err != nil {
		return false, false, err
	}
	r.Run = ""
	b.granted = append(b.granted, func() { x.answer(r) })
	return true, true, nil
}

// forward forwards a request to the run above. The reply arrives through
// childRequests, as children's messages do.
func (b *childBudget) forward(x *childRequest, a budget.Amount) {
	ask := *x.ask
	ask.ID, ask.Call.Output = tree.ReservationID(x.child, ask.ID), a.Output
	x.forwarded, x.amount = true, a
	b.above.put(&childRequest{child: b.run.id, ask: &ask, answer: func(said event.Data) {
		b.requests.put(&childRequest{answered: x, reply: said})
	}})
}

// forwardedAmount returns the sum of the requests that were forwarded for other children.
// It counts as reserved.
func (b *childBudget) forwardedAmount(but *childRequest) budget.Amount {
	var sum budget.Amount
	for _, x := range b.waiting {
		if x != but {
			sum = sum.Add(x.amount)
		}
	}
	return sum
}

func (b *childBudget) refuse(x *childRequest, r event.BudgetRefused) {
	for _, f := range b.children.active {
		if f.run == x.child {
			f.raised = false
		}
	}
	x.answer(r)
}

// deliver delivers the replies whose events are on disk.
func (b *childBudget) deliver() {
	for _, answer := range b.granted {
		answer()
	}
	clear(b.granted)
	b.granted = b.granted[:0]
}

// reconcile makes the run's account of a child match the child's own journal,
// and for an ended child the delivered messages, too.
func (b *childBudget) reconcile(ctx context.Context, child string, ended bool) error {
	committed, err := b.unsettled(ctx, child, ended)
	if err != nil {
		return b.log.failed(err)
	}
	for _, c := range committed {
		if err := b.stage(c); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	return b.mail.reconcile(ctx, child)
}

// unsettled returns the commits that the run's account of a child lacks: a
// reservation here that the child's journal does not have is given back, and
// usage there is committed here. A reservation that is open in both, or that the
// child's journal does not decide, stays while the child continues; otherwise it
// counts as used.
func (b *childBudget) unsettled(ctx context.Context, child string, ended bool) ([]event.BudgetCommitted, error) {
	funder, ok := b.machine.(machine.Funder)
	if !ok {
		return nil, nil
	}
	open := funder.Drawn(child)
	if len(open) == 0 {
		return nil, nil
	}
	used, err := b.engine.usedBy(ctx, child)
	if err != nil && !isUnreadable(err) {
		return nil, err
	}
	var committed []event.BudgetCommitted
	for _, r := range open {
		c, had := used[r.ID]
		had = had || err != nil
		switch {
		case !had:
			c = &event.BudgetCommitted{ID: r.ID}
		case c == nil && ended:
			c = completeOf(r)
		case c == nil:
			continue
		}
		c.Run = child
		committed = append(committed, *c)
	}
	return committed, nil
}

// completeOf counts a reservation as used whose usage is unknown.
func completeOf(r event.BudgetReserved) *event.BudgetCommitted {
	return &event.BudgetCommitted{
		ID: r.ID, USD: r.USD, Input: r.Input, Output: r.Output, Estimated: true,
		Usage: &llm.Usage{Input: r.Input, Output: r.Output, Estimated: true}, Priced: r.USD > 0,
	}
}

// usedBy returns what a run used for each of its reservations according to its
// journal, nil for an open one. It is empty for a run without a journal.
func (e *Engine) usedBy(ctx context.Context, run string) (map[string]*event.BudgetCommitted, error) {
	used := map[string]*event.BudgetCommitted{}
	for ev, err := range drive.AsStored(ctx, e.store, run, event.TypeBudgetReserved, event.TypeBudgetCommitted) {
		if errors.Is(err, journal.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		switch x := ev.Data.(type) {
		case event.BudgetReserved:
			used[tree.ReservationID(x.Run, x.ID)] = nil
		case event.BudgetCommitted:
			x.ID, x.Run = tree.ReservationID(x.Run, x.ID), ""
			used[x.ID] = &x
		}
	}
	return used, nil
}
