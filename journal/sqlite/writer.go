package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/journal"
)

// maxGroup bounds how many operations share a commit, so that the first of them does
// not wait for many others.
const maxGroup = 256

// op is one writing operation. It must check before it writes: if it returns an error
// without having written, the other operations of the commit are not affected.
// Operations are reused. An append is an op without a function, because appends are the
// most frequent.
type op struct {
	run   func(*conn) error
	batch journal.Batch
	first int64
	// commanded is the run that the operation sends a command to.
	commanded string
	err       error
	done      chan struct{}
}

func (o *op) perform(c *conn) (err error) {
	if o.run != nil {
		return o.run(c)
	}
	o.first, err = c.append(&o.batch)
	return err
}

var errClosed = errors.New("sqlite: journal is closed")

// writer owns the one writing connection of a process. An operation that arrives
// while no commit is running commits on its own goroutine, because waking another
// goroutine costs as much as a statement. Operations that arrive during a commit
// wait, and share the next one.
type writer struct {
	conn       *conn
	file       *file
	checkpoint *checkpointer
	committed  func(commanded []string)
	// since counts the events since the last request to copy the log.
	since int
	pool  sync.Pool
	// lost is set once nothing may be acknowledged any more. Either the file is gone,
	// so that later commits could not be read; or a sync failed, so that a later sync
	// may succeed because the system has discarded the data.
	lost error

	mu     sync.Mutex
	queue  []*op
	closed bool
	// busy reports that a commit is running; idle signals its end.
	busy bool
	idle sync.Cond
}

func newWriter(c *conn, f *file, p *checkpointer, committed func(commanded []string)) *writer {
	w := &writer{
		conn: c, file: f, checkpoint: p, committed: committed,
		pool: sync.Pool{New: func() any { return &op{done: make(chan struct{}, 1)} }},
	}
	w.idle.L = &w.mu
	return w
}

// do runs an operation in the next commit and returns when that is on disk. Once an
// operation is queued, do waits for its outcome even if ctx ends: a caller must never
// believe that nothing was written when it was.
func (w *writer) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	alone, err := w.join(o)
	if err != nil {
		return err
	}
	if alone {
		w.commit([]*op{o})
		w.pass()
	}
	<-o.done
	return o.err
}

// join reports whether the caller must commit its operation itself; otherwise it is
// queued.
func (w *writer) join(o *op) (alone bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return false, errClosed
	case w.busy:
		w.queue = append(w.queue, o)
		return false, nil
	}
	w.busy = true
	return true, nil
}

// pass leaves the queued operations to another goroutine, so that the caller does not
// wait for others.
func (w *writer) pass() {
	if group := w.take(nil); len(group) > 0 {
		go w.drain(group)
	}
}

// drain commits group after group until no operation waits. Before each group it
// yields to the goroutines that the last commit woke: otherwise two halves of a
// crowd take turns, and each also waits for the other's commit.
func (w *writer) drain(group []*op) {
	for len(group) > 0 {
		w.commit(group)
		clear(group)
		runtime.Gosched()
		group = w.take(group[:0])
	}
}

// take moves the waiting operations into a group; if there are none, it marks the
// writer as idle.
func (w *writer) take(group []*op) []*op {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxGroup)
	group = append(group, w.queue[:n]...)
	w.queue = slices.Delete(w.queue, 0, n)
	if n == 0 {
		w.busy = false
		w.idle.Broadcast()
	}
	return group
}

func (w *writer) put(o *op) {
	*o = op{done: o.done}
	w.pool.Put(o)
}

// stop waits for the queued operations and closes the connection.
func (w *writer) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for w.busy {
		w.idle.Wait()
	}
	w.checkpoint.stop()
	return w.conn.close()
}

// commit runs a group in one transaction. If that fails, it tries each operation
// alone, so that one bad batch does not fail the others; unless the cause affects
// all of them.
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
	var commanded []string
	for _, o := range group {
		if o.commanded != "" {
			commanded = append(commanded, o.commanded)
		}
	}
	w.committed(commanded)
	for _, o := range group {
		o.done <- struct{}{}
	}
}

// transact commits and then checks that the commit went into the file at the path: a
// file that was moved away accepts writes without an error.
func (w *writer) transact(group []*op) error {
	if w.lost != nil {
		return w.lost
	}
	if err := w.conn.transact(group); err != nil {
		if err = w.file.cause(err); errors.Is(err, journal.ErrReplaced) {
			w.lost = err
		} else if syncFailed(err) {
			w.lost = fmt.Errorf("sqlite: %s: nothing more is written until it is opened anew: %w", w.file.path, err)
		}
		return err
	}
	if w.lost = w.file.check(); w.lost != nil {
		return w.lost
	}
	w.eraseLog()
	for _, o := range group {
		w.since += len(o.batch.Records)
	}
	if w.since >= checkpointEvery || len(group) >= crowd && w.since >= checkpointCrowd {
		w.since = 0
		w.checkpoint.ask()
	}
	return nil
}

// eraseLog requests an erasure of the log if a commit deleted data that must not remain
// in it.
func (w *writer) eraseLog() {
	if w.conn.erased {
		w.conn.erased = false
		w.checkpoint.erase()
	}
}
