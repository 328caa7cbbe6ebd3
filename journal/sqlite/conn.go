package sqlite

import (
	"errors"

	"github.com/pawlrun/pawl/journal"
)

// conn is a connection with its prepared statements, for one goroutine.
type conn struct {
	db    *database
	stmts map[string]*statement
	rids  map[string]int64
	wrote bool
	// newest is the largest pos in the file, if it is known in the open transaction: no
	// other connection writes before its end.
	newest      int64
	newestKnown bool
	// erased reports that data was deleted that must not remain in the log.
	erased bool
}

// openConn opens a URI and runs a script of settings.
func openConn(uri, settings string) (*conn, error) {
	db, err := openDatabase(uri)
	if err != nil {
		return nil, classify(err)
	}
	c := &conn{db: db, stmts: map[string]*statement{}, rids: map[string]int64{}}
	if err := c.script(settings); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.close()
	}
	return classify(c.db.close())
}

// transact runs a group of operations in one transaction. It fails as a whole if an
// operation fails after it wrote, or if SQLite ended the transaction (a full disk); an
// operation that fails before it wrote does not affect the others.
func (c *conn) transact(group []*op) error {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	c.newestKnown = false
	for _, o := range group {
		c.wrote = false
		if o.err = o.perform(c); o.err != nil && (c.wrote || len(group) == 1 || c.db.idle()) {
			return errors.Join(o.err, c.rollback())
		}
	}
	if _, err := c.exec("COMMIT"); err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

// rollback also clears what is cached about rows that may not exist any more. A
// transaction that SQLite has ended need not be rolled back.
func (c *conn) rollback() error {
	clear(c.rids)
	if c.db.idle() {
		return nil
	}
	_, err := c.exec("ROLLBACK")
	return err
}

// prepare returns a statement without values, which stays prepared.
func (c *conn) prepare(query string) (*statement, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.db.prepare(query)
	if err != nil {
		return nil, classify(err)
	}
	c.stmts[query] = s
	return s, nil
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	if err := s.bind(args); err != nil {
		s.reset()
		return 0, err
	}
	return c.run(s)
}

// run runs a statement whose parameters are bound.
func (c *conn) run(s *statement) (changed int64, err error) {
	changed, err = s.exec()
	c.wrote = c.wrote || changed > 0
	return changed, classify(err)
}

// insert runs a statement and returns the new row's id; ok is false if the row existed
// already.
func (c *conn) insert(query string, args ...any) (id int64, ok bool, err error) {
	n, err := c.exec(query, args...)
	if err != nil || n == 0 {
		return 0, false, err
	}
	return c.db.lastRow(), true, nil
}

// script runs statements that need not stay prepared.
func (c *conn) script(text string) error { return classify(c.db.script(text)) }

// newestPos returns the largest pos in the file.
func (c *conn) newestPos() (int64, error) {
	if c.newestKnown {
		return c.newest, nil
	}
	n, _, err := c.queryInt(newestPos)
	c.newest, c.newestKnown = n, err == nil
	return n, err
}

// queryInt returns the first column of the first row; ok is false if there is no row.
func (c *conn) queryInt(query string, args ...any) (n int64, ok bool, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, false, err
	}
	defer s.reset()
	if err := s.bind(args); err != nil {
		return 0, false, err
	}
	if ok, err = s.step(); ok {
		n = s.number()
	}
	return n, ok, classify(err)
}

// queryRow returns the first row; ok is false if there is none.
func (c *conn) queryRow(query string, args ...any) (row []any, ok bool, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, false, err
	}
	defer s.reset()
	if err := s.bind(args); err != nil {
		return nil, false, err
	}
	if ok, err = s.step(); ok {
		row = s.row()
	}
	return row, ok, classify(err)
}

// each calls do for every row.
func (c *conn) each(query string, do func(row []any) error, args ...any) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	defer s.reset()
	if err := s.bind(args); err != nil {
		return err
	}
	for {
		if more, err := s.step(); !more || err != nil {
			return classify(err)
		}
		if err := do(s.row()); err != nil {
			return err
		}
	}
}

// rid returns the row id of a run.
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
