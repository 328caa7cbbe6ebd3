package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlrun/pawl/journal"
)

// maxGroup and maxBytes bound the size of one commit.
const (
	maxGroup = 256
	maxBytes = 64 << 20
)

// op is one batch to append, for a new run if row is set. done receives when its
// outcome is certain.
type op struct {
	row   *journal.Run
	ttl   int64
	batch journal.Batch
	first int64
	err   error
	done  chan struct{}
}

func (o *op) run() string { return o.batch.Lease.Run }

// size returns the approximate number of bytes that the operation sends.
func (o *op) size() (n int) {
	for i := range o.batch.Records {
		n += len(o.batch.Records[i].Body)
	}
	for i := range o.batch.Blobs {
		n += len(o.batch.Blobs[i].Bytes)
	}
	return n
}

// writer appends on the only writing connection of a process. Operations that arrive
// during a commit share the next one.
type writer struct {
	store *Store
	conn  *pgx.Conn
	// commits and appends are counted for metrics.
	commits, appends atomic.Int64

	mu     sync.Mutex
	queue  []*op
	closed bool
	// wake signals that the queue has changed or the writer has been closed.
	wake    chan struct{}
	stopped chan struct{}
}

// Commits implements [journal.CountsCommits].
func (s *Store) Commits() (commits, appends int64) {
	if s.writer == nil {
		return 0, 0
	}
	return s.writer.commits.Load(), s.writer.appends.Load()
}

func newWriter(s *Store, conn *pgx.Conn) *writer {
	w := &writer{store: s, conn: conn, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	go w.loop()
	return w
}

// do queues an operation and returns when its outcome is certain, even if ctx ends
// after that.
func (w *writer) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.done = make(chan struct{})
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, o)
	w.mu.Unlock()
	w.signal()
	<-o.done
	return o.err
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// stop waits for queued operations and closes the connection.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	<-w.stopped
}

func (w *writer) loop() {
	defer close(w.stopped)
	for range w.wake {
		for group := w.take(); len(group) > 0; group = w.take() {
			w.commit(group)
			for _, o := range group {
				close(o.done)
			}
			// Let the goroutines that the last commit woke join the next one.
			runtime.Gosched()
		}
		if w.over() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			w.drop(ctx)
			return
		}
	}
}

func (w *writer) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed && len(w.queue) == 0
}

// take removes the next group from the queue: appends of different runs, or one new
// run.
func (w *writer) take() (group []*op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs, size := map[string]bool{}, 0
	for _, o := range w.queue {
		size += o.size()
		if len(group) == maxGroup || runs[o.run()] || len(group) > 0 && (o.row != nil || group[0].row != nil || size > maxBytes) {
			break
		}
		runs[o.run()] = true
		group = append(group, o)
	}
	w.queue = slices.Delete(w.queue, 0, len(group))
	return group
}

// commit appends a group. If the response is lost, the outcome is unknown, so the group
// is sent again: the database then refuses the batches that were written, and they are
// recognised by their last event. The database's fence keeps a late first attempt from
// being written after the second.
func (w *writer) commit(group []*op) {
	open := false
	for p := newPauses(); ; {
		err := w.send(group)
		switch {
		case err == nil:
			w.settle(group, open)
			return
		case !lost(err) && len(group) > 1:
			for _, o := range group {
				w.commit([]*op{o})
			}
			return
		case errors.Is(err, journal.ErrExists) && open:
			group[0].err = err
			w.settle(group, open)
			return
		case !lost(err):
			group[0].err = err
			return
		}
		open = open || !undone(err)
		if !p.wait(context.Background(), w.store) || !open && time.Since(p.began) > w.store.config.patience {
			for _, o := range group {
				o.err = fmt.Errorf("the database did not answer for %s: %w", time.Since(p.began).Round(time.Second), err)
			}
			return
		}
	}
}

// settle records what was acknowledged, and finds what an earlier attempt has written.
func (w *writer) settle(group []*op, again bool) {
	w.commits.Add(1)
	w.appends.Add(int64(len(group)))
	for _, o := range group {
		if again && o.err != nil {
			if first, ok := w.written(o); ok {
				o.first, o.err = first, nil
			}
		}
		if o.err == nil && len(o.batch.Records) > 0 {
			last := len(o.batch.Records) - 1
			w.store.config.acked.add(journal.Loss{Run: o.run(), Seq: o.batch.Records[last].Seq, Head: o.batch.Head, Pos: o.first + int64(last)})
		}
	}
	w.store.watch.Notify("")
}

// written reports whether the last event of a batch is in the log, and returns the pos
// of the first. The bytes of an event include the hash of the previous event.
func (w *writer) written(o *op) (first int64, ok bool) {
	if len(o.batch.Records) == 0 {
		var epoch int64
		var owner string
		err := w.store.try(context.Background(), true, func(ctx context.Context) error {
			return w.store.pool.QueryRow(ctx, w.store.config.at(`SELECT epoch, owner FROM @runs WHERE id = $1`), o.run()).Scan(&epoch, &owner)
		})
		return 0, err == nil && o.batch.Release && owner == "" && epoch == o.batch.Lease.Epoch
	}
	last := o.batch.Records[len(o.batch.Records)-1]
	var pos int64
	var body []byte
	err := w.store.try(context.Background(), true, func(ctx context.Context) error {
		return w.store.pool.QueryRow(ctx, w.store.config.at(
			`SELECT l.pos, l.body FROM @log l JOIN @runs r USING (rid) WHERE r.id = $1 AND l.seq = $2`), o.run(), last.Seq).Scan(&pos, &body)
	})
	return pos - int64(len(o.batch.Records)) + 1, err == nil && bytes.Equal(body, last.Body)
}

// drop closes the connection; the next attempt opens another.
func (w *writer) drop(ctx context.Context) {
	if w.conn != nil {
		_ = w.conn.Close(ctx)
		w.conn = nil
	}
}

// send appends a group in one statement, and sets the result of each operation.
func (w *writer) send(group []*op) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	if err := w.store.config.acked.err(); err != nil {
		return err
	}
	if w.conn == nil || w.conn.IsClosed() {
		if w.conn, err = w.store.config.connect(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if errors.Is(err, journal.ErrReplaced) {
			err = errors.Join(err, w.store.config.acked.check(ctx, w.conn, w.store.config))
		}
		if err != nil && lost(err) {
			w.drop(ctx)
		}
	}()
	b := &pgx.Batch{}
	if row := group[0].row; row != nil {
		b.Queue(w.store.config.at(insertRun), w.insertArgs(group[0])...)
	}
	args, err := w.store.appendArgs(w.store.config.acked.pos(), group)
	if err != nil {
		return err
	}
	b.Queue(w.store.config.at(callAppend), args...)
	results := w.conn.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, results.Close()) }()
	if group[0].row != nil {
		tag, err := results.Exec()
		if err != nil {
			if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23505" {
				return journal.ErrExists
			}
			return classify(err)
		}
		if parent := group[0].batch.Parent.Run; parent != "" && tag.RowsAffected() == 0 {
			return fmt.Errorf("its parent %s: %w", parent, journal.ErrStale)
		}
	}
	rows, err := results.Query()
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var i, first int64
		var refused string
		if err := rows.Scan(&i, &first, &refused); err != nil {
			return err
		}
		group[i-1].first, group[i-1].err = first, refusals[refused]
		n++
	}
	if err := rows.Err(); err != nil {
		return classify(err)
	}
	if n != len(group) {
		return fmt.Errorf("postgres: %d of %d batches were answered", n, len(group))
	}
	return nil
}

// refusals maps the database's reasons to errors of package journal.
var refusals = map[string]error{"missing": journal.ErrNotFound, "ended": journal.ErrEnded, "stale": journal.ErrStale}

const callAppend = `SELECT batch, first, refused FROM @append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`

// insertRun adds a run without events. A fork is added only if its base has the events
// that they share; the base cannot be deleted before the commit. A child is added only
// while its parent's lease is held.
var insertRun = `
WITH base AS (SELECT 1 FROM @runs WHERE id = $8 AND seq >= $9 FOR KEY SHARE),
parent AS (SELECT 1 FROM @runs WHERE id = $14 AND owner = $15 AND epoch = $16 FOR SHARE)
INSERT INTO @runs (id, parent, root, depth, kind, name, fork_of, fork_seq, created, updated, state, detail, progress, seq, head, owner, epoch, expiry)
SELECT $1, $2, $3, $4, $5, $6, $8, $9, $7, $7, '', '', '', $9, $10, $11, 1, CASE WHEN $12::bigint IS NULL THEN 0 ELSE $12::bigint + ` + dbNow("$13") + ` END
WHERE ($8 = '' OR EXISTS (SELECT 1 FROM base)) AND ($14 = '' OR EXISTS (SELECT 1 FROM parent))`

func (w *writer) insertArgs(o *op) []any {
	r, l, p := o.row, o.batch.Lease, o.batch.Parent
	local, given := w.store.time()
	var ttl any
	if !l.Expiry.IsZero() {
		ttl = l.Expiry.Sub(local).Nanoseconds()
	}
	return []any{r.ID, r.Parent, r.Root, r.Depth, r.Kind, r.Name, nanos(r.Created), r.ForkOf, r.ForkSeq, o.batch.Head, l.Owner, ttl, given, p.Run, p.Owner, p.Epoch}
}

// columns holds the arguments for a group, each an array.
type columns struct {
	run, owner, head, state, detail, eventType, digest            []string
	epoch, before, size, updated, eventBatch, eventSeq, blobBatch []int64
	usedBatch, used                                               []int64
	progress, body, content                                       [][]byte
	release                                                       []bool
}

func (s *Store) appendArgs(known int64, group []*op) ([]any, error) {
	var c columns
	for i, o := range group {
		if err := c.add(int64(i+1), &o.batch); err != nil {
			return nil, err
		}
	}
	return []any{
		known, s.watch.channel, c.run, c.owner, c.epoch, c.before, c.size, c.head, c.state, c.detail, c.progress, c.updated, c.release,
		c.eventBatch, c.eventSeq, c.eventType, c.body, c.blobBatch, c.digest, c.content, c.usedBatch, c.used,
	}, nil
}

// add appends a batch to the arguments.
func (c *columns) add(i int64, b *journal.Batch) error {
	encoded, err := json.Marshal(progress{b.Status, b.Status.Waits})
	if err != nil {
		return fmt.Errorf("postgres: encode the state of run %s: %w", b.Lease.Run, err)
	}
	before := int64(-1)
	if len(b.Records) > 0 {
		before = b.Records[0].Seq - 1
	}
	c.run, c.owner, c.epoch = append(c.run, b.Lease.Run), append(c.owner, b.Lease.Owner), append(c.epoch, b.Lease.Epoch)
	c.before, c.size, c.head = append(c.before, before), append(c.size, int64(len(b.Records))), append(c.head, b.Head)
	c.state, c.detail = append(c.state, string(b.Status.State)), append(c.detail, b.Status.Detail)
	c.progress, c.updated, c.release = append(c.progress, encoded), append(c.updated, nanos(b.Time)), append(c.release, b.Release)
	for j := range b.Records {
		r := &b.Records[j]
		c.eventBatch, c.eventSeq = append(c.eventBatch, i), append(c.eventSeq, r.Seq)
		c.eventType, c.body = append(c.eventType, r.Type), append(c.body, r.Body)
	}
	for j := range b.Blobs {
		content := b.Blobs[j].Bytes
		if content == nil {
			content = []byte{}
		}
		c.blobBatch, c.digest, c.content = append(c.blobBatch, i), append(c.digest, b.Blobs[j].Digest), append(c.content, content)
	}
	for _, id := range b.Consumed {
		c.usedBatch, c.used = append(c.usedBatch, i), append(c.used, id)
	}
	return nil
}
