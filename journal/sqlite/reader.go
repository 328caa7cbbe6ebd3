package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

type scanner interface{ Scan(...any) error }

func scanRun(row scanner) (journal.Run, error) {
	var r journal.Run
	var created, updated, expiry int64
	var outcome []byte
	var waits sql.NullString
	err := row.Scan(&r.ID, &r.Parent, &r.Kind, &r.Name, &created, &updated, &r.State, &r.Detail, &r.Cycles,
		&outcome, &r.Seq, &r.Head, &r.Owner, &expiry, &r.ForkOf, &r.ForkSeq, &r.Root, &r.Depth, &waits)
	r.Created, r.Updated, r.Expiry = fromNanos(created), fromNanos(updated), fromNanos(expiry)
	r.Outcome = outcome
	if err == nil {
		r.Waits, err = decodeWaits(waits)
	}
	return r.Placed(), err
}

// Run returns a run's row.
func (s *Store) Run(ctx context.Context, id string) (journal.Run, error) {
	stmt, err := s.prepared(ctx, s.queries.run+` WHERE id = ?1`)
	var r journal.Run
	if err == nil {
		r, err = scanRun(stmt.QueryRowContext(ctx, id))
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return journal.Run{}, fmt.Errorf("sqlite: read run %s: %w", id, s.cause(err))
	}
	return r, nil
}

// Find returns the run whose id begins with prefix.
func (s *Store) Find(ctx context.Context, prefix string) (journal.Run, error) {
	if r, err := s.Run(ctx, prefix); err == nil || !errors.Is(err, journal.ErrNotFound) {
		return r, err
	}
	rows, err := s.queryRuns(ctx, s.queries.run+` WHERE id >= ?1 AND substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 5`, prefix)
	if err != nil {
		return journal.Run{}, err
	}
	switch {
	case prefix == "" || len(rows) == 0:
		return journal.Run{}, fmt.Errorf("sqlite: run %q: %w", prefix, journal.ErrNotFound)
	case len(rows) == 1:
		return rows[0], nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return journal.Run{}, fmt.Errorf("sqlite: %q fits %s: %w", prefix, strings.Join(ids, ", "), journal.ErrAmbiguous)
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	if f.ForkOf != "" && s.queries.run == selectRunUnforked {
		return nil, nil
	}
	query, args := s.listing(f)
	return s.queryRuns(ctx, query, args...)
}

// listing returns the query for runs. The condition that a parent is not empty lets
// SQLite use a partial index; otherwise it would scan all runs.
func (s *Store) listing(f journal.Filter) (query string, args []any) {
	query = s.queries.run + ` WHERE 1`
	if f.Before != "" {
		query += ` AND rid < (SELECT rid FROM runs WHERE id = ?)`
		args = append(args, f.Before)
	}
	if f.Parent != "" {
		query += ` AND parent = ? AND parent <> ''`
		args = append(args, f.Parent)
	}
	switch {
	case f.Root == "":
	case s.rootless():
		query += ` AND (id = ? OR parent = ?)`
		args = append(args, f.Root, f.Root)
	default:
		query += ` AND rid IN (SELECT rid FROM runs WHERE id = ? UNION ALL SELECT rid FROM runs WHERE root = ? AND parent <> '')`
		args = append(args, f.Root, f.Root)
	}
	if f.Roots {
		query += ` AND parent = ''`
	}
	if f.Kind != "" {
		query += ` AND kind = ?`
		args = append(args, f.Kind)
	}
	if f.Name != "" {
		query += ` AND name = ?`
		args = append(args, f.Name)
	}
	if f.Detail != "" {
		query += ` AND detail = ?`
		args = append(args, f.Detail)
	}
	if f.ForkOf != "" {
		query += ` AND fork_of = ? AND fork_of <> ''`
		args = append(args, f.ForkOf)
	}
	if f.Owner != "" {
		query += ` AND owner = ?`
		args = append(args, f.Owner)
	}
	if f.Free {
		query += ` AND (owner = '' OR expiry <= ?)`
		args = append(args, nanos(s.now()))
	}
	if !f.UpdatedBefore.IsZero() {
		query += ` AND updated < ?`
		args = append(args, nanos(f.UpdatedBefore))
	}
	if len(f.States) > 0 {
		query += ` AND state IN (?` + strings.Repeat(`, ?`, len(f.States)-1) + `)`
		for _, st := range f.States {
			args = append(args, string(st))
		}
	}
	query += ` ORDER BY rid DESC`
	if f.Limit > 0 {
		query += fmt.Sprintf(` LIMIT %d`, f.Limit)
	}
	return query, args
}

func (s *Store) queryRuns(ctx context.Context, query string, args ...any) ([]journal.Run, error) {
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlite: list runs: %w", s.cause(err))
	}
	defer rows.Close()
	var out []journal.Run
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("sqlite: list runs: %w", s.cause(err))
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: list runs: %w", s.cause(err))
	}
	return out, nil
}

// Owners returns the holders of leases.
func (s *Store) Owners(ctx context.Context) (owners []string, err error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT DISTINCT owner FROM (`+s.queries.run+`) WHERE owner <> ''`)
	if err != nil {
		return nil, fmt.Errorf("sqlite: list the holders of leases: %w", s.cause(err))
	}
	defer rows.Close()
	for rows.Next() {
		var owner string
		if err := rows.Scan(&owner); err != nil {
			return nil, fmt.Errorf("sqlite: list the holders of leases: %w", s.cause(err))
		}
		owners = append(owners, owner)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: list the holders of leases: %w", s.cause(err))
	}
	return owners, nil
}

// Records returns records of a run after a seq, first those that a fork shares. It
// queries the fork's own records only after those, so that a run without ancestors
// needs one query.
func (s *Store) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := s.ownRecords(ctx, run, max(after, 0), limit)
	if err != nil || len(records) > 0 {
		return records, err
	}
	row, err := s.Run(ctx, run)
	shared := row.ForkSeq - max(after, 0)
	if err != nil || shared <= 0 {
		return nil, err
	}
	want := shared
	if limit > 0 {
		want = min(want, int64(limit))
	}
	if records, err = s.Records(ctx, row.ForkOf, after, int(want)); err != nil {
		return records, fmt.Errorf("sqlite: read what run %s shares: %w", run, err)
	}
	if limit > 0 {
		if limit -= len(records); limit <= 0 {
			return records, nil
		}
	}
	own, err := s.ownRecords(ctx, run, row.ForkSeq, limit)
	return append(records, own...), err
}

// ownRecords returns a run's own records.
func (s *Store) ownRecords(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	return s.queryRecords(ctx, limit, afterSeq(after), s.queries.records, run, after, noLimit(limit))
}

// RecordsOf returns up to limit (0: all) records of a run that have some types, after a
// seq. It does not read rows without these types.
func (s *Store) RecordsOf(ctx context.Context, run string, after int64, limit int, types ...event.Type) ([]journal.Record, error) {
	query, selects := s.queries.typed, kindsOf(types...)
	if query == "" { // a file of an older version
		query, selects = s.queries.records, -1
	}
	line, err := journal.Lineage(ctx, s, run)
	if err != nil {
		return nil, err
	}
	var out []journal.Record
	for i, part := range line {
		last := i == len(line)-1
		if !last && part.To <= after {
			continue
		}
		records, err := s.queryRecords(ctx, limit-len(out), func(r *journal.Record) bool {
			return r.Seq > after && (last || r.Seq <= part.To) && slices.Contains(types, event.Type(r.Type))
		}, query, part.Run, max(after, part.From), selects)
		if out = append(out, records...); err != nil || limit > 0 && len(out) == limit {
			return out, err
		}
	}
	return out, nil
}

// Tail returns records of any run after a pos.
func (s *Store) Tail(ctx context.Context, after int64, limit int) ([]journal.Record, error) {
	return s.queryRecords(ctx, limit, afterPos(after), s.queries.tail, after, noLimit(limit))
}

// Last returns the newest pos.
func (s *Store) Last(ctx context.Context) (pos int64, err error) {
	if err := s.readers.QueryRowContext(ctx, s.queries.last).Scan(&pos); err != nil {
		return 0, fmt.Errorf("sqlite: find the newest event: %w", s.cause(err))
	}
	return pos, nil
}

// Tree returns records of a root and all its descendants after a pos.
func (s *Store) Tree(ctx context.Context, root string, after int64, limit int) ([]journal.Record, error) {
	records, err := s.queryRecords(ctx, limit, afterPos(after), s.queries.tree, root, after, noLimit(limit))
	if err == nil && len(records) == 0 {
		_, err = s.Run(ctx, root)
	}
	return records, err
}

// rootless reports whether the file is of a version without roots.
func (s *Store) rootless() bool {
	return s.queries.run == selectRunUnforked || s.queries.run == selectRunRootless
}

func noLimit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// prepared returns a cached statement: compiling a query costs as much as finding a
// hundred events.
func (s *Store) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt, ok := s.statements[query]; ok {
		return stmt, nil
	}
	stmt, err := s.readers.PrepareContext(ctx, query)
	if err == nil {
		s.statements[query] = stmt
	}
	return stmt, err
}

// queryRecords reads up to limit records (0: all) from the rows of a query, filtered by
// keep. If a row is damaged, it also returns the records before it.
func (s *Store) queryRecords(ctx context.Context, limit int, keep func(*journal.Record) bool, query string, args ...any) ([]journal.Record, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("sqlite: read events: %w", s.cause(err))
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlite: read events: %w", s.cause(err))
	}
	defer rows.Close()
	var out []journal.Record
	types := map[string]string{}
	for (limit <= 0 || len(out) < limit) && rows.Next() {
		var p packed
		if err := rows.Scan(&p.last.Pos, &p.last.Run, &p.last.Seq, &p.n, &p.typ, &p.last.Body, &p.last.Root); err != nil {
			return nil, fmt.Errorf("sqlite: read events: %w", s.cause(err))
		}
		err := p.cut(types, func(r journal.Record) bool {
			if keep(&r) {
				out = append(out, r)
			}
			return limit <= 0 || len(out) < limit
		})
		if err != nil {
			return out, fmt.Errorf("sqlite: read events: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: read events: %w", s.cause(err))
	}
	return out, nil
}

// afterSeq and afterPos keep the records after an event.
func afterSeq(seq int64) func(*journal.Record) bool {
	return func(r *journal.Record) bool { return r.Seq > seq }
}

func afterPos(pos int64) func(*journal.Record) bool {
	return func(r *journal.Record) bool { return r.Pos > pos }
}

// Inbox returns the commands that are not consumed.
func (s *Store) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	query, args := selectInbox, []any(nil)
	if run != "" {
		query, args = selectOwnInbox, []any{run}
	}
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlite: read inbox of %s: %w", run, s.cause(err))
	}
	defer rows.Close()
	var out []journal.Command
	for rows.Next() {
		var id int64
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return nil, fmt.Errorf("sqlite: read inbox of %s: %w", run, s.cause(err))
		}
		var c journal.Command
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, fmt.Errorf("sqlite: read inbox of %s: %w", run, err)
		}
		c.ID = id
		out = append(out, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlite: read inbox of %s: %w", run, s.cause(err))
	}
	if len(out) == 0 && run != "" {
		_, err = s.Run(ctx, run)
	}
	return out, err
}

// Blob returns stored content.
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	var b []byte
	err := s.readers.QueryRowContext(ctx, `SELECT bytes FROM blobs WHERE digest = ?1`, digest).Scan(&b)
	if errors.Is(err, sql.ErrNoRows) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: read blob %s: %w", digest, s.cause(err))
	}
	return b, nil
}
