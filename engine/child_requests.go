package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/tree"
)

// childRequests is where the children of a run draw from its budget. Nobody waits while
// putting something in, and whoever has the run's lock answers when it comes by:
// so neither a child nor its parent can hold the other up.
type childRequests struct {
	mu       sync.Mutex
	requests []*childRequest
	came     chan struct{}
}

func newChildRequests() *childRequests { return &childRequests{came: make(chan struct{}, 1)} }

// childRequest is what a child says to its parent: it asks for a reservation, or takes
// that back, or tells what one was used for, or whether it waits for a person. A
// child tells before it asks again. It is also what the run above the parent
// answers, where the parent asks that in its turn.
type childRequest struct {
	child   string
	waiting *bool
	used    *event.BudgetCommitted
	// last says that the child has ended with this: it is journalled with that end.
	last bool

	ask *machine.Reserve
	// answer takes the answer to an ask, and does not wait.
	answer func(event.Data)
	// passed says that the run above is being asked in its turn, for what asked
	// says, and said is its answer.
	passed bool
	asked  budget.Amount
	said   event.Data
	// withdrawn names the ask that is taken back, and answered is the one that the
	// run above has answered.
	withdrawn string
	answered  *childRequest
	// post is a message for others, and read names one that the child has taken in.
	post *posted
	read string
}

func (f *childRequests) put(x *childRequest) {
	f.mu.Lock()
	f.requests = append(f.requests, x)
	f.mu.Unlock()
	if x.last {
		return
	}
	select {
	case f.came <- struct{}{}:
	default:
	}
}

// take takes out all but what others than the child that has left end with. Of a run
// that offers no agents any more childRequests is nil.
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

// drawn is the channel that wakes a driver for its children's requests, nil for a
// run that has none.
func (d *driver) drawn() <-chan struct{} {
	if d.fromChildren == nil {
		return nil
	}
	return d.fromChildren.came
}

// answerRequests journals what the children used, and what they are given. What
// they are given reaches them after the commit. A child for whose call there is
// room once its siblings' calls have ended waits, and what one asks for that has
// left is passed over.
func (d *driver) answerRequests(left string) (progress bool, err error) {
	if d.fromChildren == nil {
		return false, nil
	}
	// What was used comes first, so that whoever has waited longest for the room
	// is the first to have it.
	for _, x := range d.fromChildren.take(left) {
		staged, err := d.takeRequest(x)
		if err != nil {
			return false, err
		}
		progress = progress || staged
	}
	waiting := d.childRequests[:0]
	for _, x := range d.childRequests {
		if x.child == left {
			d.withdraw(x)
			continue
		}
		staged, done, err := d.grant(x)
		if err != nil {
			return false, err
		}
		if !done {
			waiting = append(waiting, x)
		}
		progress = progress || staged
	}
	clear(d.childRequests[len(waiting):])
	d.childRequests = waiting
	return progress, nil
}

// takeRequest takes in what a child, or the run above, has said.
func (d *driver) takeRequest(x *childRequest) (staged bool, err error) {
	switch {
	case x.ask != nil:
		d.childRequests = append(d.childRequests, x)
	case x.withdrawn != "":
		i := slices.IndexFunc(d.childRequests, func(y *childRequest) bool { return y.child == x.child && y.ask.ID == x.withdrawn })
		if i >= 0 {
			d.withdraw(d.childRequests[i])
			d.childRequests = slices.Delete(d.childRequests, i, i+1)
		}
	case x.post != nil:
		return d.carry(x)
	case x.read != "":
		return d.delivered(x.child, x.read)
	case x.answered != nil:
		if slices.Contains(d.childRequests, x.answered) {
			x.answered.said = x.said
		} else {
			d.returnAbove(x.said)
		}
	default:
		return d.told(x)
	}
	return false, nil
}

// withdraw takes back what the run above is being asked for a child that has
// left, or asks for nothing any more.
func (d *driver) withdraw(x *childRequest) {
	switch {
	case x.said != nil:
		d.returnAbove(x.said)
	case x.passed:
		d.above.fromChildren.put(&childRequest{child: d.run.id, withdrawn: tree.ReservationID(x.child, x.ask.ID)})
	}
	x.passed, x.asked, x.said = false, budget.Amount{}, nil
}

// returnAbove gives back what the run above has set aside and nobody needs.
func (d *driver) returnAbove(said event.Data) {
	if r, ok := said.(event.BudgetReserved); ok {
		d.above.fromChildren.put(&childRequest{child: d.run.id, used: &event.BudgetCommitted{ID: r.ID, Run: d.run.id}})
	}
}

// told journals what a child tells. That one waits is of interest as long as its
// call is open.
func (d *driver) told(x *childRequest) (staged bool, err error) {
	if x.waiting == nil {
		return true, d.stage(*x.used)
	}
	if d.machine.State().Phase != machine.Running {
		return false, nil
	}
	c, open := d.log.children.of(x.child)
	if !open {
		return false, nil
	}
	return true, d.stage(event.ChildWaiting{Child: x.child, CallID: c.call, Waiting: *x.waiting})
}

// tellWaiting tells the run above when this one begins to wait for a person, and
// when it goes on. That it parks or ends the run above sees by itself.
func (d *driver) tellWaiting() {
	if d.above == nil {
		return
	}
	s := d.machine.State()
	if s.Phase != machine.Running || s.Asking == d.waitingAbove {
		return
	}
	d.waitingAbove = s.Asking
	d.above.fromChildren.put(&childRequest{child: d.run.id, waiting: &s.Asking})
}

// grant answers a child that asks, once the runs above have set the call aside,
// too. Of a run that is on its way out nobody gets anything: its children are, too.
func (d *driver) grant(x *childRequest) (progress, done bool, err error) {
	funder, ok := d.machine.(machine.Funder)
	if !ok || d.life.leaving() || d.machine.State().Phase != machine.Running || x.passed && x.said == nil {
		return false, false, nil
	}
	open := slices.ContainsFunc(funder.Drawn(x.child), func(r event.BudgetReserved) bool { return r.ID == x.ask.ID })
	if open { // it was granted to who has left since, and is about to come back
		return false, false, nil
	}
	call := x.ask.Call
	switch said := x.said.(type) {
	case event.BudgetRefused:
		d.refuse(x, event.BudgetRefused{
			ID: x.ask.ID, Setting: said.Setting, Detail: said.Detail, Ask: said.Ask, AtLeast: said.AtLeast, Run: cmp.Or(said.Run, d.above.run.id),
		})
		return false, true, nil
	case event.BudgetReserved:
		call.Output = said.Output
	}
	g := funder.Admit(call, d.askedAbove(x))
	switch {
	case g.Refusal.Setting != "":
		d.withdraw(x)
		if g.Refusal.Wait {
			return false, false, nil
		}
		d.refuse(x, event.BudgetRefused{ID: x.ask.ID, Setting: g.Refusal.Setting, Detail: g.Refusal.Detail(), Ask: g.Ask, AtLeast: g.AtLeast})
		return false, true, nil
	case d.above != nil && x.said == nil:
		d.askFor(x, g.Amount)
		return false, false, nil
	case x.passed && g.Amount.Output != call.Output: // there is less room here by now
		d.withdraw(x)
		return true, false, nil
	}
	r := event.BudgetReserved{ID: x.ask.ID, USD: g.Amount.USD, Input: g.Amount.Input, Output: g.Amount.Output, Run: x.child}
	if err := d.stage(r); err != nil {
		return false, false, err
	}
	r.Run = ""
	d.granted = append(d.granted, func() { x.answer(r) })
	return true, true, nil
}

// askFor asks the run above for what this one has room for. What it answers comes
// back through childRequests, as what children say does.
func (d *driver) askFor(x *childRequest, a budget.Amount) {
	ask := *x.ask
	ask.ID, ask.Call.Output = tree.ReservationID(x.child, ask.ID), a.Output
	x.passed, x.asked = true, a
	d.above.fromChildren.put(&childRequest{child: d.run.id, ask: &ask, answer: func(said event.Data) {
		d.fromChildren.put(&childRequest{answered: x, said: said})
	}})
}

// askedAbove is what the run above is being asked for on behalf of others: it is
// as good as set aside here.
func (d *driver) askedAbove(but *childRequest) budget.Amount {
	var sum budget.Amount
	for _, x := range d.childRequests {
		if x != but {
			sum = sum.Add(x.asked)
		}
	}
	return sum
}

func (d *driver) refuse(x *childRequest, r event.BudgetRefused) {
	for _, f := range d.children {
		if f.run == x.child {
			f.raised = false
		}
	}
	x.answer(r)
}

// deliver gives the children the answers that say what is on disk by now.
func (d *driver) deliver() {
	for _, answer := range d.granted {
		answer()
	}
	clear(d.granted)
	d.granted = d.granted[:0]
}

// reserveEffect is the effect that waits for the answer of the run above.
const reserveEffect = "reserve"

// askAbove asks the run above for a part of its budget, once. A call whose time
// has not come sets the alarm instead.
func (d *driver) askAbove(a machine.Reserve) error {
	switch {
	case a.NotBefore.After(d.env.clock.now()):
		d.alarm.set(a.NotBefore)
		d.alarm.waiting = journal.WaitRetry
		return nil
	case d.reserving:
		return nil
	case d.above == nil:
		return errors.New("engine: run " + d.run.id + ": it has a parent, and is not driven by that")
	}
	d.reserving = true
	d.effects.add(func(work context.Context) { d.awaitAbove(work, a) })
	return nil
}

// awaitAbove settles with the answer, or with nothing when the run stops it:
// what was reserved above meanwhile is given back when the run has left.
func (d *driver) awaitAbove(work context.Context, a machine.Reserve) {
	ctx, cancel := d.effects.until(work, 0)
	stopped := func(ctx context.Context) []event.Data {
		late, ok := errors.AsType[outOfTime](context.Cause(ctx))
		if !ok {
			return nil
		}
		return []event.Data{event.BudgetRefused{ID: a.ID, Setting: late.setting, Detail: late.Error()}}
	}
	d.effects.launch(ctx, cancel, effect{
		id: reserveEffect,
		do: func(ctx context.Context) []event.Data {
			answer := make(chan event.Data, 1)
			d.above.fromChildren.put(&childRequest{child: d.run.id, ask: &a, answer: func(said event.Data) { answer <- said }})
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

// tellAbove tells the run above what calls used, its own and those of the runs
// below, and which messages have come, once that is on disk here.
func (d *driver) tellAbove() {
	if d.above == nil {
		return
	}
	for i := range d.log.staged {
		switch x := d.log.staged[i].event.Data.(type) {
		case event.BudgetCommitted:
			x.ID, x.Run = tree.ReservationID(x.Run, x.ID), d.run.id
			d.above.fromChildren.put(&childRequest{child: d.run.id, used: &x, last: d.finished()})
		case event.InputReceived:
			d.confirm(x.MessageID)
		}
	}
}

// reconcile makes the run's account say of a child what the child's own journal
// says, and of one that has ended which messages it has.
func (d *driver) reconcile(ctx context.Context, child string, ended bool) error {
	committed, err := d.unsettledRequests(ctx, child, ended)
	if err != nil {
		return d.log.failed(err)
	}
	for _, c := range committed {
		if err := d.stage(c); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	return d.reconcileMail(ctx, child)
}

// unsettledRequests are what the run's account lacks of a child: what was reserved
// here and never there is given back, and what was used there is committed here.
// A reservation that is open in both, or of which the child's journal cannot
// tell, stays as long as the child goes on; else it counts as used.
func (d *driver) unsettledRequests(ctx context.Context, child string, ended bool) ([]event.BudgetCommitted, error) {
	funder, ok := d.machine.(machine.Funder)
	if !ok {
		return nil, nil
	}
	open := funder.Drawn(child)
	if len(open) == 0 {
		return nil, nil
	}
	used, err := d.engine.usedBy(ctx, child)
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

// completeOf counts a reservation as used of which nobody knows what was used.
func completeOf(r event.BudgetReserved) *event.BudgetCommitted {
	return &event.BudgetCommitted{
		ID: r.ID, USD: r.USD, Input: r.Input, Output: r.Output, Estimated: true,
		Usage: &llm.Usage{Input: r.Input, Output: r.Output, Estimated: true}, Priced: r.USD > 0,
	}
}

// usedBy is what a run's journal says of its reservations: what each was used
// for, nil for one that is open. Of a run that was never made it says nothing.
func (e *Engine) usedBy(ctx context.Context, run string) (map[string]*event.BudgetCommitted, error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	used := map[string]*event.BudgetCommitted{}
	for _, r := range records {
		if r.Type != string(event.TypeBudgetReserved) && r.Type != string(event.TypeBudgetCommitted) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return nil, &unreadableError{err}
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
