package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

// WithClock returns options that replace the process's own clock.
func WithClock(o Options, local func() time.Time) Options {
	o.local = local
	return o
}

// SchemaVersion is the schema version of this package.
const SchemaVersion = schemaVersion

// Fill adds a number of running runs to the schema, each with a lease of one of some
// owners.
func (s *Store) Fill(ctx context.Context, runs, owners int) error {
	_, err := s.pool.Exec(ctx, s.config.at(`
INSERT INTO @runs (id, parent, root, depth, kind, name, fork_of, fork_seq, created, updated, state, detail, progress, seq, head, owner, epoch, expiry)
SELECT 'filled-' || n, '', 'filled-' || n, 1, 'Agent', '', '', 0, 0, 0, 'running', '', '{}', 1, '', 'worker-' || n % $2, 1, 9e18
FROM generate_series(1, $1) n`), runs, owners)
	if err == nil {
		_, err = s.pool.Exec(ctx, s.config.at(`ANALYZE @runs`))
	}
	return err
}

// Plan returns the database's plan for a list of runs.
func (s *Store) Plan(ctx context.Context, f journal.Filter) (plan string, err error) {
	conditions, args := listing(f)
	rows, err := s.pool.Query(ctx, s.config.at(`EXPLAIN `+selectRuns+conditions), append([]any{nil}, args...)...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}
