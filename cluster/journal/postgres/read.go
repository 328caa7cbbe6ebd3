package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

// collect runs a query and returns its rows.
func collect[T any](ctx context.Context, s *Store, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) (out []T, err error) {
	err = s.try(ctx, true, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, s.config.at(sql), args...)
		if err == nil {
			out, err = pgx.CollectRows(rows, scan)
		}
		return err
	})
	if len(out) == 0 {
		return nil, err
	}
	return out, err
}

// progress is [journal.Progress] as stored in a row. It distinguishes an unknown list
// of what a run waits for (nil) from an empty one.
type progress struct {
	journal.Progress
	Waits *journal.Waits `json:"waits,omitempty"`
}

func decodeProgress(encoded []byte) (journal.Progress, error) {
	var p progress
	err := json.Unmarshal(encoded, &p)
	p.Progress.Waits = p.Waits
	return p.Progress, err
}

// selectRuns reads rows with the remaining time of their leases.
var selectRuns = `
SELECT id, parent, root, depth, kind, name, fork_of, fork_seq, created, updated, progress, seq, head, owner,
	CASE WHEN expiry <> 0 THEN expiry - ` + dbNow("$1") + ` END FROM @runs WHERE true`

// runs executes [selectRuns] with conditions, whose first parameter is $2. It converts
// the expiry of a lease to the caller's clock, so that the clocks may differ.
func (s *Store) runs(ctx context.Context, conditions string, args ...any) ([]journal.Run, error) {
	local, given := s.time()
	scan := func(row pgx.CollectableRow) (r journal.Run, err error) {
		var created, updated int64
		var left *int64
		var encoded []byte
		err = row.Scan(&r.ID, &r.Parent, &r.Root, &r.Depth, &r.Kind, &r.Name, &r.ForkOf, &r.ForkSeq, &created, &updated,
			&encoded, &r.Seq, &r.Head, &r.Owner, &left)
		if err == nil {
			r.Progress, err = decodeProgress(encoded)
		}
		r.Created, r.Updated = fromNanos(created), fromNanos(updated)
		if left != nil {
			r.Expiry = local.Add(time.Duration(*left)).UTC()
		}
		return r, err
	}
	return collect(ctx, s, scan, selectRuns+conditions, append([]any{given}, args...)...)
}

// Run returns a run's row.
func (s *Store) Run(ctx context.Context, id string) (journal.Run, error) {
	rows, err := s.runs(ctx, ` AND id = $2`, id)
	if err == nil && len(rows) == 0 {
		err = journal.ErrNotFound
	}
	if err != nil {
		return journal.Run{}, fmt.Errorf("postgres: read run %s: %w", id, err)
	}
	return rows[0], nil
}

// Find returns the run whose id begins with prefix.
func (s *Store) Find(ctx context.Context, prefix string) (journal.Run, error) {
	if r, err := s.Run(ctx, prefix); err == nil || !errors.Is(err, journal.ErrNotFound) {
		return r, err
	}
	rows, err := s.runs(ctx, ` AND id >= $2 AND left(id, length($2)) = $2 ORDER BY id LIMIT 5`, prefix)
	switch {
	case err != nil:
		return journal.Run{}, fmt.Errorf("postgres: find run %q: %w", prefix, err)
	case prefix == "" || len(rows) == 0:
		return journal.Run{}, fmt.Errorf("postgres: run %q: %w", prefix, journal.ErrNotFound)
	case len(rows) == 1:
		return rows[0], nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return journal.Run{}, fmt.Errorf("postgres: %q fits %s: %w", prefix, strings.Join(ids, ", "), journal.ErrAmbiguous)
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	conditions, args := listing(f)
	rows, err := s.runs(ctx, conditions, args...)
	if err != nil {
		return nil, fmt.Errorf("postgres: list runs: %w", err)
	}
	return rows, nil
}

// listing returns the conditions of a list for [Store.runs].
func listing(f journal.Filter) (conditions string, args []any) {
	var where strings.Builder
	and := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&where, " AND "+condition, len(args)+1)
	}
	for _, c := range []struct{ column, value string }{
		{"parent", f.Parent}, {"root", f.Root}, {"kind", f.Kind}, {"name", f.Name}, {"detail", f.Detail}, {"fork_of", f.ForkOf}, {"owner", f.Owner},
	} {
		if c.value != "" {
			and(c.column+" = $%d", c.value)
		}
	}
	if f.Before != "" {
		and("rid < (SELECT rid FROM @runs WHERE id = $%d)", f.Before)
	}
	if !f.UpdatedBefore.IsZero() {
		and("updated < $%d", nanos(f.UpdatedBefore))
	}
	if f.Roots {
		where.WriteString(" AND parent = ''")
	}
	if f.Free { // a released lease has the expiry 0
		where.WriteString(" AND expiry <= " + dbStart("$1"))
	}
	if len(f.States) > 0 {
		// The values are literals, so that the database can use the partial index of
		// running runs.
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = "'" + strings.ReplaceAll(string(state), "'", "''") + "'"
		}
		where.WriteString(" AND state IN (" + strings.Join(states, ", ") + ")")
	}
	where.WriteString(" ORDER BY rid DESC")
	if f.Limit > 0 {
		fmt.Fprintf(&where, " LIMIT %d", f.Limit)
	}
	return where.String(), args
}

// selectOwners steps from one holder to the next in the index of holders.
const selectOwners = `
WITH RECURSIVE holder AS (
	(SELECT owner FROM @runs WHERE owner <> '' ORDER BY owner LIMIT 1)
	UNION ALL
	SELECT (SELECT r.owner FROM @runs r WHERE r.owner <> '' AND r.owner > holder.owner ORDER BY r.owner LIMIT 1)
	FROM holder WHERE holder.owner IS NOT NULL)
SELECT owner FROM holder WHERE owner IS NOT NULL`

// Owners returns the holders of leases.
func (s *Store) Owners(ctx context.Context) ([]string, error) {
	owners, err := collect(ctx, s, pgx.RowTo[string], selectOwners)
	if err != nil {
		return nil, fmt.Errorf("postgres: list the holders of leases: %w", err)
	}
	return owners, nil
}

// selectRecords reads a run's events after a number. For a fork, it includes the events
// that the fork shares with its bases.
const selectRecords = `
WITH RECURSIVE line AS (
	SELECT rid, id, fork_of, fork_seq AS low, 9223372036854775807 AS high FROM @runs WHERE id = $1
	UNION ALL
	SELECT r.rid, r.id, r.fork_of, r.fork_seq, least(line.high, line.low) FROM @runs r JOIN line ON r.id = line.fork_of WHERE line.low > $2)
SELECT l.pos, line.id, l.seq, l.type, l.body, '' FROM line
JOIN @log l ON l.rid = line.rid AND l.seq > greatest(line.low, $2) AND l.seq <= line.high
ORDER BY l.seq LIMIT $3`

const selectTail = `
SELECT l.pos, r.id, l.seq, l.type, l.body, r.root FROM @log l JOIN @runs r USING (rid)
WHERE l.pos > $1 ORDER BY l.pos LIMIT $2`

const selectTree = `
SELECT l.pos, r.id, l.seq, l.type, l.body, r.root FROM @log l JOIN @runs r USING (rid)
WHERE r.root = $1 AND l.pos > $2 ORDER BY l.pos LIMIT $3`

func scanRecord(row pgx.CollectableRow) (r journal.Record, err error) {
	err = row.Scan(&r.Pos, &r.Run, &r.Seq, &r.Type, &r.Body, &r.Root)
	return r, err
}

func limited(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}

// Records returns records of a run after a seq, beginning with those that a fork
// shares.
func (s *Store) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := collect(ctx, s, scanRecord, selectRecords, run, max(after, 0), limited(limit))
	return records, s.there(ctx, run, len(records), err)
}

// Tree returns records of a root and of all runs below it after a pos.
func (s *Store) Tree(ctx context.Context, root string, after int64, limit int) ([]journal.Record, error) {
	records, err := collect(ctx, s, scanRecord, selectTree, root, after, limited(limit))
	return records, s.there(ctx, root, len(records), err)
}

// there returns an error if no records were read because the run does not exist.
func (s *Store) there(ctx context.Context, run string, n int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("postgres: read run %s: %w", run, err)
	case n == 0:
		_, err = s.Run(ctx, run)
	}
	return err
}

// Tail returns records of any run after a pos.
func (s *Store) Tail(ctx context.Context, after int64, limit int) ([]journal.Record, error) {
	records, err := collect(ctx, s, scanRecord, selectTail, after, limited(limit))
	if err != nil {
		return nil, fmt.Errorf("postgres: read events: %w", err)
	}
	return records, nil
}

// Last returns the newest pos that was assigned.
func (s *Store) Last(ctx context.Context) (pos int64, err error) {
	err = s.row(ctx, `SELECT pos FROM @head`, nil, &pos)
	if err != nil {
		return 0, fmt.Errorf("postgres: find the newest event: %w", err)
	}
	return pos, nil
}

// row reads one row.
func (s *Store) row(ctx context.Context, sql string, args []any, into ...any) error {
	return s.try(ctx, true, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.config.at(sql), args...).Scan(into...)
	})
}

// selectInbox reads one row without a command for a run that has none, so that a missing
// run is noticed without another statement.
const selectInbox = `SELECT i.id, i.body FROM @runs r LEFT JOIN @inbox i ON i.rid = r.rid WHERE r.id = $1 ORDER BY i.id`

// Inbox returns the commands that are not consumed.
func (s *Store) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	scan := func(row pgx.CollectableRow) (c journal.Command, err error) {
		var id *int64
		var body []byte
		if err := row.Scan(&id, &body); err != nil || id == nil {
			return c, err
		}
		err = json.Unmarshal(body, &c)
		c.ID = *id
		return c, err
	}
	if run == "" {
		all, err := collect(ctx, s, scan, `SELECT id, body FROM @inbox ORDER BY id`)
		if err != nil {
			return nil, fmt.Errorf("postgres: read the inbox of all runs: %w", err)
		}
		return all, nil
	}
	own, err := collect(ctx, s, scan, selectInbox, run)
	if err == nil && len(own) == 0 {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: read the inbox of run %s: %w", run, err)
	}
	if own[0].ID == 0 { // the run is there and has no command
		return nil, nil
	}
	return own, nil
}

// Blob returns stored content.
func (s *Store) Blob(ctx context.Context, digest string) (b []byte, err error) {
	if err = s.row(ctx, `SELECT bytes FROM @blobs WHERE digest = $1`, []any{digest}, &b); err != nil {
		return nil, fmt.Errorf("postgres: read blob %s: %w", digest, err)
	}
	return b, nil
}
