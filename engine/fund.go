package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// fund is where the children of a run draw from its budget. Nobody waits while
// putting something in, and whoever has the run's turn answers when it comes by:
// so neither a child nor its parent can hold the other up.
type fund struct {
	mu    sync.Mutex
	draws []draw
	came  chan struct{}
}

func newFund() *fund { return &fund{came: make(chan struct{}, 1)} }

// draw is what a child says to its parent: it asks for a reservation, or tells
// what one was used for, or whether it waits for a person. A child tells before
// it asks again.
type draw struct {
	child   string
	waiting *bool
	ask     *machine.Reserve
	// answer takes the answer to an ask, and has room for it.
	answer chan event.Data
	used   event.BudgetCommitted
}

func (f *fund) put(x draw) {
	f.mu.Lock()
	f.draws = append(f.draws, x)
	f.mu.Unlock()
	select {
	case f.came <- struct{}{}:
	default:
	}
}

// take empties the fund. Of a run that offers no agents any more it is nil.
func (f *fund) take() []draw {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	draws := f.draws
	f.draws = nil
	return draws
}

// granted is an answer that may be given once what it says is on disk.
type granted struct {
	answer chan event.Data
	data   event.Data
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
	for _, x := range d.fund.take() {
		if x.ask != nil {
			d.draws = append(d.draws, x)
			continue
		}
		staged, err := d.told(x)
		if err != nil {
			return false, err
		}
		progress = progress || staged
	}
	var waiting []draw
	for _, x := range d.draws {
		if x.child == left {
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
	d.draws = waiting
	return progress, nil
}

// told journals what a child tells. That one waits is of interest as long as its
// call is open.
func (d *driver) told(x draw) (staged bool, err error) {
	if x.waiting == nil {
		return true, d.stage(x.used)
	}
	if d.machine.State().Phase != machine.Running {
		return false, nil
	}
	for c := range d.open.all() {
		if c.child == x.child {
			return true, d.stage(event.ChildWaiting{Child: x.child, CallID: c.id, Waiting: *x.waiting})
		}
	}
	return false, nil
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
	d.above.put(draw{child: d.run, waiting: &s.Asking})
}

// grant answers a child that asks. Of a run that is on its way out nobody gets
// anything: its children are, too.
func (d *driver) grant(x draw) (staged, done bool, err error) {
	funder, ok := d.machine.(machine.Funder)
	if !ok || d.interrupted || d.cancelled || d.machine.State().Phase != machine.Running {
		return false, false, nil
	}
	g := funder.Admit(x.ask.Call)
	switch {
	case g.Refusal.Setting == "":
		r := event.BudgetReserved{ID: x.ask.ID, USD: g.Amount.USD, Input: g.Amount.Input, Output: g.Amount.Output, Run: x.child}
		if err := d.stage(r); err != nil {
			return false, false, err
		}
		r.Run = ""
		d.granted = append(d.granted, granted{answer: x.answer, data: r})
		return true, true, nil
	case g.Refusal.Wait:
		return false, false, nil
	}
	for _, f := range d.children {
		if f.run == x.child {
			f.raised = false
		}
	}
	x.answer <- event.BudgetRefused{ID: x.ask.ID, Setting: g.Refusal.Setting, Detail: g.Refusal.Detail(), Ask: g.Ask, AtLeast: g.AtLeast}
	return false, true, nil
}

// deliver gives the children what is reserved for them on disk.
func (d *driver) deliver() {
	for _, g := range d.granted {
		g.answer <- g.data
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
			d.above.put(draw{child: d.run, ask: &a, answer: answer})
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

// tellAbove tells the run above what calls used, once that is on disk here.
func (d *driver) tellAbove() {
	if d.above == nil {
		return
	}
	for i := range d.staged {
		if used, ok := d.staged[i].event.Data.(event.BudgetCommitted); ok && used.Run == "" {
			used.Run = d.run
			d.above.put(draw{child: d.run, used: used})
		}
	}
}

// reconcile makes the run's account say of a child what the child's own journal
// says.
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
	return nil
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
			used[x.ID] = nil
		case event.BudgetCommitted:
			used[x.ID] = &x
		}
	}
	return used, nil
}
