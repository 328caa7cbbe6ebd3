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

// fund is where the children of a run draw from its budget. Nobody waits while
// putting something in, and whoever has the run's turn answers when it comes by:
// so neither a child nor its parent can hold the other up.
type fund struct {
	mu    sync.Mutex
	draws []*draw
	came  chan struct{}
}

func newFund() *fund { return &fund{came: make(chan struct{}, 1)} }

// draw is what a child says to its parent: it asks for a reservation, or takes
// that back, or tells what one was used for, or whether it waits for a person. A
// child tells before it asks again. It is also what the run above the parent
// answers, where the parent asks that in its turn.
type draw struct {
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
	answered  *draw
	// post is a message for others, and read names one that the child has taken in.
	post *posted
	read string
}

func (f *fund) put(x *draw) {
	f.mu.Lock()
	f.draws = append(f.draws, x)
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
// that offers no agents any more the fund is nil.
func (f *fund) take(left string) (taken []*draw) {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*draw
	for _, x := range f.draws {
		if x.last && x.child != left {
			kept = append(kept, x)
		} else {
			taken = append(taken, x)
		}
	}
	f.draws = kept
	return taken
}

// drawn is the channel that wakes a driver for its children's draws, nil for a
// run that has none.
func (d *driver) drawn() <-chan struct{} {
	if d.fund == nil {
		return nil
	}
	return d.fund.came
}

// answerDraws journals what the children used, and what they are given. What
// they are given reaches them after the commit. A child for whose call there is
// room once its siblings' calls have ended waits, and what one asks for that has
// left is passed over.
func (d *driver) answerDraws(left string) (progress bool, err error) {
	if d.fund == nil {
		return false, nil
	}
	// What was used comes first, so that whoever has waited longest for the room
	// is the first to have it.
	for _, x := range d.fund.take(left) {
		staged, err := d.hearDraw(x)
		if err != nil {
			return false, err
		}
		progress = progress || staged
	}
	waiting := d.draws[:0]
	for _, x := range d.draws {
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
	clear(d.draws[len(waiting):])
	d.draws = waiting
	return progress, nil
}

// hearDraw takes in what a child, or the run above, has said.
func (d *driver) hearDraw(x *draw) (staged bool, err error) {
	switch {
	case x.ask != nil:
		d.draws = append(d.draws, x)
	case x.withdrawn != "":
		i := slices.IndexFunc(d.draws, func(y *draw) bool { return y.child == x.child && y.ask.ID == x.withdrawn })
		if i >= 0 {
			d.withdraw(d.draws[i])
			d.draws = slices.Delete(d.draws, i, i+1)
		}
	case x.post != nil:
		return d.carry(x)
	case x.read != "":
		return d.delivered(x.child, x.read)
	case x.answered != nil:
		if slices.Contains(d.draws, x.answered) {
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
func (d *driver) withdraw(x *draw) {
	switch {
	case x.said != nil:
		d.returnAbove(x.said)
	case x.passed:
		d.above.fund.put(&draw{child: d.run, withdrawn: tree.ReservationID(x.child, x.ask.ID)})
	}
	x.passed, x.asked, x.said = false, budget.Amount{}, nil
}

// returnAbove gives back what the run above has set aside and nobody needs.
func (d *driver) returnAbove(said event.Data) {
	if r, ok := said.(event.BudgetReserved); ok {
		d.above.fund.put(&draw{child: d.run, used: &event.BudgetCommitted{ID: r.ID, Run: d.run}})
	}
}

// told journals what a child tells. That one waits is of interest as long as its
// call is open.
func (d *driver) told(x *draw) (staged bool, err error) {
	if x.waiting == nil {
		return true, d.stage(*x.used)
	}
	if d.machine.State().Phase != machine.Running {
		return false, nil
	}
	c, open := d.begun.of(x.child)
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
	d.above.fund.put(&draw{child: d.run, waiting: &s.Asking})
}

// grant answers a child that asks, once the runs above have set the call aside,
// too. Of a run that is on its way out nobody gets anything: its children are, too.
func (d *driver) grant(x *draw) (progress, done bool, err error) {
	funder, ok := d.machine.(machine.Funder)
	if !ok || d.interrupted || d.cancelled || d.machine.State().Phase != machine.Running || x.passed && x.said == nil {
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
			ID: x.ask.ID, Setting: said.Setting, Detail: said.Detail, Ask: said.Ask, AtLeast: said.AtLeast, Run: cmp.Or(said.Run, d.above.run),
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
// back through the fund, as what children say does.
func (d *driver) askFor(x *draw, a budget.Amount) {
	ask := *x.ask
	ask.ID, ask.Call.Output = tree.ReservationID(x.child, ask.ID), a.Output
	x.passed, x.asked = true, a
	d.above.fund.put(&draw{child: d.run, ask: &ask, answer: func(said event.Data) {
		d.fund.put(&draw{answered: x, said: said})
	}})
}

// askedAbove is what the run above is being asked for on behalf of others: it is
// as good as set aside here.
func (d *driver) askedAbove(but *draw) budget.Amount {
	var sum budget.Amount
	for _, x := range d.draws {
		if x != but {
			sum = sum.Add(x.asked)
		}
	}
	return sum
}

func (d *driver) refuse(x *draw, r event.BudgetRefused) {
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

// reserveFlight is the flight that waits for the answer of the run above.
const reserveFlight = "reserve"

// askAbove asks the run above for a part of its budget, once. A call whose time
// has not come sets the alarm instead.
func (d *driver) askAbove(a machine.Reserve) error {
	switch {
	case a.NotBefore.After(d.now()):
		d.wake(a.NotBefore)
		d.waiting = journal.WaitRetry
		return nil
	case d.reserving:
		return nil
	case d.above == nil:
		return errors.New("engine: run " + d.run + ": it has a parent, and is not driven by that")
	}
	d.reserving = true
	d.queue = append(d.queue, func(work context.Context) { d.awaitAbove(work, a) })
	return nil
}

// awaitAbove settles with the answer, or with nothing when the run stops it:
// what was reserved above meanwhile is given back when the run has left.
func (d *driver) awaitAbove(work context.Context, a machine.Reserve) {
	ctx, cancel := d.until(work, 0)
	stopped := func(ctx context.Context) []event.Data {
		late, ok := errors.AsType[outOfTime](context.Cause(ctx))
		if !ok {
			return nil
		}
		return []event.Data{event.BudgetRefused{ID: a.ID, Setting: late.setting, Detail: late.Error()}}
	}
	d.launch(ctx, cancel, effect{
		id: reserveFlight,
		do: func(ctx context.Context) []event.Data {
			answer := make(chan event.Data, 1)
			d.above.fund.put(&draw{child: d.run, ask: &a, answer: func(said event.Data) { answer <- said }})
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
	for i := range d.staged {
		switch x := d.staged[i].event.Data.(type) {
		case event.BudgetCommitted:
			x.ID, x.Run = tree.ReservationID(x.Run, x.ID), d.run
			d.above.fund.put(&draw{child: d.run, used: &x, last: d.finished()})
		case event.InputReceived:
			d.confirm(x.MessageID)
		}
	}
}

// reconcile makes the run's account say of a child what the child's own journal
// says, and of one that has ended which messages it has.
func (d *driver) reconcile(ctx context.Context, child string, ended bool) error {
	committed, err := d.unsettledDraws(ctx, child, ended)
	if err != nil {
		return d.storeFailed(err)
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

// unsettledDraws are what the run's account lacks of a child: what was reserved
// here and never there is given back, and what was used there is committed here.
// A reservation that is open in both, or of which the child's journal cannot
// tell, stays as long as the child goes on; else it counts as used.
func (d *driver) unsettledDraws(ctx context.Context, child string, ended bool) ([]event.BudgetCommitted, error) {
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
			c = wholeOf(r)
		case c == nil:
			continue
		}
		c.Run = child
		committed = append(committed, *c)
	}
	return committed, nil
}

// wholeOf counts a reservation as used of which nobody knows what was used.
func wholeOf(r event.BudgetReserved) *event.BudgetCommitted {
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
