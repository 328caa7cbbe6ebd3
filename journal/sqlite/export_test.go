package sqlite

import (
	"context"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlrun/pawl/journal"
)

// The queries by which events and commands are read.
const (
	OwnLog      = ownCommits
	TailLog     = tailCommits
	OwnInbox    = selectOwnInbox
	NewCommands = selectCommanded
)

// Listing is the query for runs.
func (s *Store) Listing(f journal.Filter) (query string, args []any) { return s.listing(f) }

// Format is the version of the format that is written.
const Format = schemaVersion

// LimitPages bounds the file of a store that is opened with o, so that it
// fills up.
func LimitPages(o Options, pages int) Options {
	o.maxPages = pages
	return o
}

// Pragma reads a setting of the writing connection.
func (s *Store) Pragma(name string) (value any, err error) {
	err = s.write(context.Background(), func(c *conn) error {
		row, _, err := c.queryRow("PRAGMA " + name)
		if err == nil {
			value = row[0]
		}
		return err
	})
	return value, err
}

// RaisePages lifts the bound of [LimitPages].
func (s *Store) RaisePages() error {
	return s.write(context.Background(), func(c *conn) error {
		_, _, err := c.queryRow("PRAGMA max_page_count = 1000000")
		return err
	})
}

// Script runs statements of the writing connection in one transaction.
func (s *Store) Script(text string) error {
	return s.write(context.Background(), func(c *conn) error { return c.script(text) })
}

// During runs do in a transaction, which has the log's write lock.
func (s *Store) During(do func()) error {
	return s.write(context.Background(), func(*conn) error { do(); return nil })
}

// RefuseCopier lets the connection that copies the log be opened only at the
// second attempt.
func (s *Store) RefuseCopier() {
	p := s.writer.checkpoint
	open := p.open
	p.open = func() (*conn, error) {
		p.open = open
		return nil, journal.ErrLocked
	}
}

// Query returns the first row of a query on the writing connection.
func (s *Store) Query(text string, args ...any) (row []any, err error) {
	err = s.write(context.Background(), func(c *conn) (err error) {
		row, _, err = c.queryRow(text, args...)
		return err
	})
	return row, err
}

// AppendTogether appends batches in one commit.
func (s *Store) AppendTogether(batches ...journal.Batch) []error {
	group := make([]*op, len(batches))
	for i, b := range batches {
		group[i] = &op{batch: b, done: make(chan struct{}, 1)}
	}
	if alone, err := s.writer.join(group[0]); !alone || err != nil {
		panic("somebody else is committing")
	}
	s.writer.commit(group)
	s.writer.pass()
	errs := make([]error, len(group))
	for i, o := range group {
		errs[i] = o.err
	}
	return errs
}

// Recompiled runs a query with each of these parameters, and counts how often it
// was compiled again for them.
func (s *Store) Recompiled(query string, runs ...[]any) (n int32, err error) {
	err = s.write(context.Background(), func(c *conn) error {
		for _, args := range runs {
			if _, _, err := c.queryRow(query, args...); err != nil {
				return err
			}
		}
		prepared, err := c.prepare(query)
		if err == nil {
			n = sqlite3.Xsqlite3_stmt_status(c.db.tls, prepared.handle, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0)
		}
		return err
	})
	return n, err
}

// Plan is how a query is answered, a step a line.
func (s *Store) Plan(ctx context.Context, query string, args ...any) (steps []string, err error) {
	rows, err := s.readers.QueryContext(ctx, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// Cause returns the error for a failure of a reader or the writer.
func (s *Store) Cause(err error) error { return s.cause(err) }

// Codes of SQLite by what they mean for a journal.
const (
	CodeRead      = sqlite3.SQLITE_IOERR_READ
	CodeNotOpened = sqlite3.SQLITE_CANTOPEN
	CodeMoved     = sqlite3.SQLITE_READONLY_DBMOVED
	CodeCorrupt   = sqlite3.SQLITE_CORRUPT
	CodeBusy      = sqlite3.SQLITE_BUSY
)

// Failed is a failure of SQLite's.
func Failed(code int32) error { return &sqliteError{code: code, message: "it failed"} }

// Unpack gives the events of a row of commits, or the row itself where it has none.
func Unpack(pos, seq, events int64, body []byte) (records []journal.Record, err error) {
	p := packed{last: journal.Record{Pos: pos, Seq: seq, Body: body}, n: events}
	err = p.cut(map[string]string{}, func(r journal.Record) bool {
		records = append(records, r)
		return true
	})
	return records, err
}
