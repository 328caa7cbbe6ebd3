package engine

import (
	"context"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// parkedChild is a child that parked while its siblings go on. What is said to
// it meanwhile is in its own journal, behind the event with the number seq.
type parkedChild struct {
	event.ChildParked
	seq int64
	// raised says that a limit of the run above was changed since it last refused
	// the child something.
	raised bool
	// news says that somebody may have said something to the child since its
	// journal was looked at.
	news bool
	// below are the children that it waits for, once they have been looked for.
	below  []parkedChild
	looked bool
}

// spokenTo are the children to which somebody has said something. They are safe for
// concurrent use.
type spokenTo struct {
	mu sync.Mutex
	of map[string]bool
}

func (t *spokenTo) note(child string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]bool{}
	}
	t.of[child] = true
}

func (t *spokenTo) take() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of
	t.of = nil
	return of
}

// lookAgain has the journals of all parked children looked at: another
// process tells this one nothing.
func (cs *children) lookAgain() {
	for i := range cs.parked {
		cs.parked[i].news = true
	}
}

// wake takes up the children that parked for something that somebody
// has said meanwhile, to them or to this run. Without it they would wait until
// their siblings are done and somebody resumes the run.
func (cs *children) wake(ctx context.Context) error {
	if len(cs.parked) == 0 || cs.life.leaving() || cs.machine.State().Phase != machine.Running {
		return nil
	}
	told := cs.spokenTo.take()
	waiting := cs.parked[:0]
	for _, p := range cs.parked {
		answered := p.raised && waitsAbove(p.ChildParked)
		if !answered && (p.news || told[p.Child]) {
			var err error
			if answered, err = cs.engine.lookAt(ctx, &p); err != nil {
				return cs.log.failed(err)
			}
			p.news = false
		}
		if !answered {
			waiting = append(waiting, p)
			continue
		}
		if err := cs.stage(event.ChildWaiting{Child: p.Child, CallID: p.CallID}); err != nil {
			return err
		}
	}
	cs.parked = waiting
	return nil
}

// limitChanged notes that the children which this run refused something may ask
// again: those that have parked, and those that are about to.
func (cs *children) limitChanged() {
	for i := range cs.parked {
		cs.parked[i].raised = true
	}
	for _, f := range cs.active {
		f.raised = true
		cs.engine.tellRaised(f.run)
	}
}

// tellRaised tells a driver of this engine that a run above may have more room.
func (e *Engine) tellRaised(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.drivers[run]; d != nil {
		d.inbox.notifyRaised()
	}
}

// waitsAbove reports whether a child parked at a limit of the run that started it.
func waitsAbove(p event.ChildParked) bool {
	return p.Reason == event.ParkInput && p.Limit == "" || p.Reason == event.ParkInterrupted
}

// lookAt finds out whether a parked run has been told what it waits for, or has
// ended without it; so has one that waits for runs below it where one of those has.
// It keeps which runs those are.
func (e *Engine) lookAt(ctx context.Context, p *parkedChild) (bool, error) {
	row, err := e.store.Run(ctx, p.Child)
	switch {
	case err != nil:
		return false, err
	case row.State == journal.Ended:
		return true, nil
	case row.State != journal.Parked, p.Reason != event.ParkApproval && p.Reason != event.ParkInput:
		return false, nil
	case row.Seq != p.seq:
		told, err := e.toldSince(ctx, p)
		if told || err != nil {
			return told, err
		}
	}
	if err := e.lookBelow(ctx, p); err != nil {
		return false, err
	}
	for i := range p.below {
		if answered, err := e.lookAt(ctx, &p.below[i]); answered || err != nil {
			return answered, err
		}
	}
	return false, nil
}

func (e *Engine) toldSince(ctx context.Context, p *parkedChild) (bool, error) {
	said, err := e.store.Records(ctx, p.Child, p.seq, 0)
	if err != nil {
		return false, err
	}
	for _, r := range said {
		switch t := event.Type(r.Type); {
		case t.Resolves():
			return true, nil
		case t == event.TypeInputReceived, t == event.TypeBudgetRaised:
			if p.Reason == event.ParkInput {
				return true, nil
			}
		}
	}
	return false, nil
}

// lookBelow finds the runs that a parked one waits for, once: none comes or goes
// as long as it is parked.
func (e *Engine) lookBelow(ctx context.Context, p *parkedChild) error {
	if p.looked {
		return nil
	}
	records, err := e.store.Records(ctx, p.Child, 0, int(p.seq))
	if err != nil {
		return err
	}
	open := map[string]event.ChildParked{}
	for _, r := range records {
		switch event.Type(r.Type) {
		case event.TypeChildParked, event.TypeChildFinished:
		default:
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return &unreadableError{err}
		}
		switch x := ev.Data.(type) {
		case event.ChildParked:
			open[x.Child] = x
		case event.ChildFinished:
			delete(open, x.Child)
		}
	}
	p.looked = true
	for _, parked := range open {
		seq, err := e.lastParked(ctx, parked.Child)
		if err != nil {
			return err
		}
		p.below = append(p.below, parkedChild{ChildParked: parked, seq: seq})
	}
	return nil
}

// lastParked is the number of the event by which a run parked last.
func (e *Engine) lastParked(ctx context.Context, run string) (seq int64, err error) {
	records, err := e.store.Records(ctx, run, 0, 0)
	if err != nil {
		return 0, err
	}
	for _, r := range records {
		if r.Type == string(event.TypeRunParked) {
			seq = r.Seq
		}
	}
	return seq, nil
}
