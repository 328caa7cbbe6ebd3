package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlrun/pawl/journal"
)

// maxGroup bounds how many operations one commit takes along, so that the
// first of them does not wait for a crowd.
const maxGroup = 256

// op is one writing operation. It must check before it writes: an error that
// it returns with nothing written leaves its companions in the commit alone.
// Operations are reused, and an append is one without a function of its own,
// because appends are what a journal is for.
type op struct {
	run   func(*conn) error
	batch journal.Batch
	first int64
	// inbox says that the operation leaves a command for a run's driver.
	inbox bool
	err   error
	done  chan struct{}
}

func (o *op) perform(c *conn) (err error) {
	if o.run != nil {
		return o.run(c)
	}
	o.first, err = c.append(&o.batch)
	return err
}

var errClosed = errors.New("sqlite: journal is closed")

// writer owns the one writing connection of a process.
type writer struct {
	conn      *conn
	file      *file
	committed func(inbox bool)
	ops       chan *op
	pool      sync.Pool
	ended     chan error
	// lost is set once the file is not there any more: what follows would
	// build on commits that nobody can read.
	lost error

	mu     sync.RWMutex
	closed bool
}

func newWriter(c *conn, f *file, committed func(inbox bool)) *writer {
	w := &writer{
		conn: c, file: f, committed: committed,
		ops: make(chan *op, maxGroup), ended: make(chan error, 1),
		pool: sync.Pool{New: func() any { return &op{done: make(chan struct{}, 1)} }},
	}
	go w.loop()
	return w
}

// do runs an operation in the next commit and returns when that is on disk.
// Once an operation is handed over its outcome is waited for, whatever ctx
// says: a caller must never believe that nothing was written when it was.
func (w *writer) do(ctx context.Context, o *op) error {
	if err := w.hand(ctx, o); err != nil {
		return err
	}
	<-o.done
	return o.err
}

func (w *writer) hand(ctx context.Context, o *op) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.ops <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) get() *op { return w.pool.Get().(*op) }

func (w *writer) put(o *op) {
	*o = op{done: o.done}
	w.pool.Put(o)
}

// stop commits what was handed over and closes the connection.
func (w *writer) stop() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.ops)
	return <-w.ended
}

func (w *writer) loop() {
	group := make([]*op, 0, maxGroup)
	for o := range w.ops {
		group = w.collect(append(group[:0], o))
		w.commit(group)
		clear(group)
	}
	w.ended <- w.conn.close()
}

func (w *writer) collect(group []*op) []*op {
	for len(group) < maxGroup {
		select {
		case o, ok := <-w.ops:
			if !ok {
				return group
			}
			group = append(group, o)
		default:
			return group
		}
	}
	return group
}

// commit runs a group in one transaction. When that fails, each operation is
// tried alone, so that one bad batch harms nobody else; but not where the cause
// is everybody's.
func (w *writer) commit(group []*op) {
	err := w.transact(group)
	switch {
	case err == nil:
	case len(group) == 1, errors.Is(err, journal.ErrLocked), errors.Is(err, journal.ErrReplaced):
		for _, o := range group {
			o.err = err
		}
	default:
		for _, o := range group {
			o.err = w.transact([]*op{o})
		}
	}
	inbox := false
	for _, o := range group {
		inbox = inbox || o.inbox
	}
	w.committed(inbox)
	for _, o := range group {
		o.done <- struct{}{}
	}
}

// transact commits and then makes sure that the commit went into the file that
// others open: one that was moved away takes writes without complaint.
func (w *writer) transact(group []*op) error {
	if w.lost != nil {
		return w.lost
	}
	if err := w.conn.transact(group); err != nil {
		return err
	}
	w.lost = w.file.check()
	return w.lost
}
