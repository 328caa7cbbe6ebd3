package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/pawlrun/pawl/journal"
	moderncsqlite "modernc.org/sqlite"
)

// conn is a connection with its prepared statements, for one goroutine.
type conn struct {
	raw   driver.Conn
	stmts map[string]stmt
	rids  map[string]int64
	args  []driver.NamedValue
	// values are those of the events that are being added.
	values []any
	wrote  bool
}

type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func openConn(dsn string) (*conn, error) {
	raw, err := (&moderncsqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, classify(err)
	}
	return &conn{raw: raw, stmts: map[string]stmt{}, rids: map[string]int64{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return classify(errors.Join(append(errs, c.raw.Close())...))
}

// transact runs a group of operations in one transaction. It fails as a whole
// when an operation fails after it wrote; one that fails before it wrote
// leaves the others alone.
func (c *conn) transact(group []*op) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range group {
		c.wrote = false
		if o.err = o.perform(c); o.err != nil && (c.wrote || len(group) == 1) {
			return errors.Join(o.err, c.rollback())
		}
	}
	if _, err := c.exec("COMMIT"); err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// codeError is SQLITE_ERROR, which ROLLBACK gives where nothing is open.
const codeError = 1

// rollback also forgets what it knew of rows that may not exist any more. A
// transaction that SQLite ended itself (a full disk) needs no second end.
func (c *conn) rollback() error {
	clear(c.rids)
	_, err := c.exec("ROLLBACK")
	if e, ok := errors.AsType[*moderncsqlite.Error](err); ok && e.Code() == codeError {
		return nil
	}
	return err
}

func (c *conn) prepare(query string) (stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, classify(err)
	}
	s, ok := raw.(stmt)
	if !ok {
		return nil, fmt.Errorf("sqlite: %T cannot run statements", raw)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
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

// insert runs a statement and returns the new row's id; ok is false when there
// was one already.
func (c *conn) insert(query string, args ...any) (id int64, ok bool, err error) {
	r, err := c.result(query, args...)
	if err != nil {
		return 0, false, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	c.wrote = true
	id, err = r.LastInsertId()
	return id, true, err
}

func (c *conn) result(query string, args ...any) (driver.Result, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	r, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return nil, classify(err)
	}
	return r, nil
}

// script runs statements that are not worth keeping prepared.
func (c *conn) script(text string) error {
	ex, ok := c.raw.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("sqlite: %T cannot run scripts", c.raw)
	}
	_, err := ex.ExecContext(context.Background(), text, nil)
	return classify(err)
}

// queryInt returns the first column of the first row; ok is false without one.
func (c *conn) queryInt(query string, args ...any) (n int64, ok bool, err error) {
	row, ok, err := c.queryRow(query, args...)
	if !ok || err != nil {
		return 0, ok, err
	}
	n, _ = row[0].(int64)
	return n, true, nil
}

func (c *conn) queryRow(query string, args ...any) ([]driver.Value, bool, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return nil, false, classify(err)
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	switch err := rows.Next(row); {
	case errors.Is(err, io.EOF):
		return nil, false, nil
	case err != nil:
		return nil, false, classify(err)
	}
	return row, true, nil
}

// rid is the number that stands for a run's id in the file.
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
