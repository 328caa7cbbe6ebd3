package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pawlrun/pawl/journal"
	moderncsqlite "modernc.org/sqlite"
)

// maxGroup bounds how many operations one commit takes along, so that the
// first of them does not wait for a crowd.
const maxGroup = 256

// op is one writing operation. It must check before it writes: an error that
// it returns with nothing written leaves its companions in the commit alone.
type op struct {
	run func(*conn) error
	// inbox says that the operation leaves a command for a run's driver.
	inbox bool
	err   error
	done  chan struct{}
}

// writer owns the one writing connection of a process.
type writer struct {
	ops       chan *op
	quit      chan struct{}
	ended     chan error
	committed func(inbox bool)
}

func openWriter(dsn string) (*writer, error) {
	c, err := openConn(dsn)
	if err != nil {
		return nil, err
	}
	if err := c.migrate(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	w := &writer{ops: make(chan *op, maxGroup), quit: make(chan struct{}), ended: make(chan error, 1), committed: func(bool) {}}
	go w.loop(c)
	return w, nil
}

// do runs an operation in the next commit and returns when that is on disk.
// Once an operation is handed over its outcome is waited for, whatever ctx
// says: a caller must never believe that nothing was written when it was.
func (w *writer) do(ctx context.Context, o *op) error {
	o.done = make(chan struct{})
	select {
	case w.ops <- o:
	case <-w.quit:
		return errors.New("sqlite: journal is closed")
	case <-ctx.Done():
		return ctx.Err()
	}
	<-o.done
	return o.err
}

func (w *writer) stop() error {
	close(w.quit)
	return <-w.ended
}

func (w *writer) loop(c *conn) {
	group := make([]*op, 0, maxGroup)
	for {
		select {
		case o := <-w.ops:
			group = w.collect(append(group[:0], o))
			w.commit(c, group)
		case <-w.quit:
			w.drain()
			w.ended <- c.close()
			return
		}
	}
}

func (w *writer) collect(group []*op) []*op {
	for len(group) < maxGroup {
		select {
		case o := <-w.ops:
			group = append(group, o)
		default:
			return group
		}
	}
	return group
}

func (w *writer) drain() {
	for {
		select {
		case o := <-w.ops:
			o.err = errors.New("sqlite: journal is closed")
			close(o.done)
		default:
			return
		}
	}
}

// commit runs a group in one transaction. When an operation fails after it
// wrote, the transaction is undone and each runs alone, so that one bad batch
// harms nobody else.
func (w *writer) commit(c *conn, group []*op) {
	if err := c.transact(group); err != nil && len(group) > 1 && !errors.Is(err, journal.ErrLocked) {
		for _, o := range group {
			o.err = c.transact([]*op{o})
		}
	} else if err != nil {
		for _, o := range group {
			o.err = err
		}
	}
	inbox := false
	for _, o := range group {
		inbox = inbox || o.inbox
	}
	w.committed(inbox)
	for _, o := range group {
		close(o.done)
	}
}

// conn is a connection with its prepared statements.
type conn struct {
	raw   driver.Conn
	stmts map[string]driver.Stmt
	rids  map[string]int64
	args  []driver.Value
	wrote bool
}

func openConn(dsn string) (*conn, error) {
	raw, err := (&moderncsqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, classify(err)
	}
	return &conn{raw: raw, stmts: map[string]driver.Stmt{}, rids: map[string]int64{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// migrate creates the tables in a new file. Two processes may open it at once.
func (c *conn) migrate() error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	v, _, err := c.queryInt("PRAGMA user_version")
	if err == nil && v == 0 {
		ex, ok := c.raw.(driver.ExecerContext)
		if !ok {
			return errors.New("sqlite: driver cannot run scripts")
		}
		_, err = ex.ExecContext(context.Background(), fmt.Sprintf("%s PRAGMA user_version = %d; PRAGMA application_id = %d;",
			schema, schemaVersion, applicationID), nil)
	}
	if err != nil {
		_, rollback := c.exec("ROLLBACK")
		return errors.Join(classify(err), rollback)
	}
	_, err = c.exec("COMMIT")
	return err
}

func (c *conn) transact(group []*op) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range group {
		c.wrote = false
		if o.err = o.run(c); o.err != nil && (c.wrote || len(group) == 1) {
			return errors.Join(o.err, c.rollback())
		}
	}
	if _, err := c.exec("COMMIT"); err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// rollback also forgets what it knew of rows that may not exist any more. A
// transaction that SQLite ended itself (a full disk) needs no second end.
func (c *conn) rollback() error {
	clear(c.rids)
	_, err := c.exec("ROLLBACK")
	if e, ok := errors.AsType[*moderncsqlite.Error](err); ok && e.Code() == 1 {
		return nil
	}
	return err
}

func (c *conn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(query)
	if err != nil {
		return nil, classify(err)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.Value {
	c.args = c.args[:0]
	for _, a := range args {
		c.args = append(c.args, a)
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	r, err := c.result(query, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	c.wrote = c.wrote || n > 0
	return n, err
}

// insert runs a statement and returns the new row's id.
func (c *conn) insert(query string, args ...any) (int64, error) {
	r, err := c.result(query, args...)
	if err != nil {
		return 0, err
	}
	c.wrote = true
	return r.LastInsertId()
}

func (c *conn) result(query string, args ...any) (driver.Result, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	r, err := s.Exec(c.bind(args)) //nolint:staticcheck // the context form allocates a watcher per call
	if err != nil {
		return nil, classify(err)
	}
	return r, nil
}

// queryInt returns the first column of the first row; ok is false without one.
func (c *conn) queryInt(query string, args ...any) (n int64, ok bool, err error) {
	row, ok, err := c.queryRow(query, 1, args...)
	if !ok || err != nil {
		return 0, ok, err
	}
	n, _ = row[0].(int64)
	return n, true, nil
}

func (c *conn) queryRow(query string, columns int, args ...any) ([]driver.Value, bool, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.Query(c.bind(args)) //nolint:staticcheck // as in result
	if err != nil {
		return nil, false, classify(err)
	}
	defer rows.Close()
	row := make([]driver.Value, columns)
	switch err := rows.Next(row); {
	case errors.Is(err, io.EOF):
		return nil, false, nil
	case err != nil:
		return nil, false, classify(err)
	}
	return row, true, nil
}

func (c *conn) rid(run string) (int64, error) {
	if rid, ok := c.rids[run]; ok {
		return rid, nil
	}
	rid, ok, err := c.queryInt(`SELECT rid FROM runs WHERE id = ?1`, run)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, journal.ErrNotFound
	}
	c.rids[run] = rid
	return rid, nil
}

// append is the one place where events reach the file.
func (c *conn) append(b journal.Batch) (int64, error) {
	rid, err := c.rid(b.Lease.Run)
	if err != nil {
		return 0, err
	}
	n := int64(len(b.Records))
	last := int64(0)
	if n > 0 {
		last = b.Records[n-1].Seq
	}
	changed, err := c.exec(updateRun, last, b.Head, string(b.Status.State), b.Status.Detail, int64(b.Status.Cycles),
		bytesOrNil(b.Status.Outcome), nanos(b.Time), b.Release, rid, b.Lease.Epoch, b.Lease.Owner, last-n)
	if err != nil {
		return 0, err
	}
	if changed == 0 {
		return 0, c.whyNot(b.Lease.Run)
	}
	return c.insertRecords(rid, b)
}

func (c *conn) insertRecords(rid int64, b journal.Batch) (int64, error) {
	top, _, err := c.queryInt(`SELECT max(pos) FROM events`)
	if err != nil {
		return 0, err
	}
	for i, r := range b.Records {
		if _, err := c.insert(insertEvent, top+int64(i)+1, rid, r.Seq, r.Type, r.Body); err != nil {
			return 0, err
		}
	}
	for _, blob := range b.Blobs {
		if _, err := c.exec(`INSERT OR IGNORE INTO blobs (digest, bytes) VALUES (?1, ?2)`, blob.Digest, blob.Bytes); err != nil {
			return 0, err
		}
	}
	for _, id := range b.Consumed {
		if _, err := c.exec(`DELETE FROM inbox WHERE id = ?1`, id); err != nil {
			return 0, err
		}
	}
	return top + 1, nil
}

// whyNot explains an append that its fence refused.
func (c *conn) whyNot(run string) error {
	row, ok, err := c.queryRow(`SELECT state FROM runs WHERE id = ?1`, 1, run)
	switch {
	case err != nil:
		return err
	case !ok:
		delete(c.rids, run)
		return journal.ErrNotFound
	case row[0] == string(journal.Ended):
		return journal.ErrEnded
	}
	return journal.ErrStale
}

func (c *conn) heldBy(run string) error {
	row, ok, err := c.queryRow(`SELECT owner, expiry FROM runs WHERE id = ?1`, 2, run)
	switch {
	case err != nil:
		return err
	case !ok:
		return journal.ErrNotFound
	}
	owner, _ := row[0].(string)
	expiry, _ := row[1].(int64)
	return &journal.HeldError{Run: run, Owner: owner, Expiry: time.Unix(0, expiry)}
}
