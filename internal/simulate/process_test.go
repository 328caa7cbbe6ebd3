package simulate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// errCrashed is what a dead process would see, if it saw anything.
var errCrashed = errors.New("simulate: the process is dead")

// process is the journal as one process sees it. When the process dies,
// nothing that it does reaches the journal any more.
type process struct {
	journal.Store
	world *world
	name  string
	dead  atomic.Bool
	// committed hears of every batch that is on disk.
	committed func(journal.Batch)
}

func (p *process) die() { p.dead.Store(true) }

// place is the key of the process that a context is in.
type place struct{}

// inside is a context of what goes on in the process, for the tools: all
// processes have the same, because to make a set of them is dear.
func (p *process) inside(ctx context.Context) context.Context {
	return context.WithValue(ctx, place{}, p)
}

func processOf(ctx context.Context) *process { return ctx.Value(place{}).(*process) }

// around performs a write, or dies before it, or after it before anybody hears
// of it, or stalls long enough for others to take the run.
func (p *process) around(what string, write func() error) error {
	switch p.world.fault() {
	case dieBefore:
		p.world.notef("%s dies before %s", p.name, what)
		p.die()
	case dieAfter:
		if p.dead.Load() {
			return errCrashed
		}
		if err := write(); err != nil {
			return err
		}
		p.world.notef("%s dies after %s", p.name, what)
		p.die()
		return errCrashed
	case stall:
		p.world.notef("%s stalls before %s", p.name, what)
		select {
		case p.world.stalled <- struct{}{}:
		default:
		}
		time.Sleep(40 * time.Second)
	}
	if p.dead.Load() {
		return errCrashed
	}
	return write()
}

func (p *process) Create(ctx context.Context, row journal.Run, b journal.Batch) (l journal.Lease, pos int64, err error) {
	err = p.around("create", func() error {
		l, pos, err = p.Store.Create(ctx, row, b)
		if err == nil {
			p.committed(b)
		}
		return err
	})
	return l, pos, err
}

func (p *process) Append(ctx context.Context, b journal.Batch) (pos int64, err error) {
	what := "append"
	if len(b.Records) > 0 {
		what += " of " + b.Records[0].Type
	}
	err = p.around(what, func() error {
		pos, err = p.Store.Append(ctx, b)
		if err == nil {
			p.committed(b)
		}
		return err
	})
	return pos, err
}

func (p *process) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	if p.dead.Load() {
		return journal.Lease{}, errCrashed
	}
	return p.Store.Acquire(ctx, run, owner, dead, ttl)
}

func (p *process) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	if p.dead.Load() {
		return l, errCrashed
	}
	return p.Store.Renew(ctx, l, ttl)
}

func (p *process) Release(ctx context.Context, l journal.Lease) error {
	if p.dead.Load() {
		return errCrashed
	}
	return p.Store.Release(ctx, l)
}

func (p *process) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	if p.dead.Load() {
		return nil, errCrashed
	}
	return p.Store.Inbox(ctx, run)
}

// committed notes what is on disk now, for the promises that are about order.
func (w *world) committed(b journal.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range b.Records {
		e, err := event.Decode(r.Body)
		if err != nil {
			w.violatef("stored event %d does not decode: %v", r.Seq, err)
			return
		}
		w.taints.event(w, e.Data)
		w.approvals.event(w, e.Data)
		w.hookCommitted(e.Data)
		switch d := e.Data.(type) {
		case event.ToolStarted:
			w.intents[intent{d.CallID, d.Attempt}] = true
		case event.ToolResult:
			w.settled[d.CallID] = true
		case event.ModelRequested:
			w.requested++
		}
	}
}
