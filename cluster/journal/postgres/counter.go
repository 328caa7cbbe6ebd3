package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsCounters = (*Store)(nil)

// addToCounter returns the sum and whether it was added. The update locks the counter's
// row also if it adds nothing, so that the sum is the present one.
const addToCounter = `
INSERT INTO @counters AS c (name, sum, added)
VALUES ($1, CASE WHEN $2::bigint <= 0 OR $2::bigint <= $3::bigint THEN $2::bigint ELSE 0 END, $2::bigint <= 0 OR $2::bigint <= $3::bigint)
ON CONFLICT (name) DO UPDATE SET
	sum = CASE WHEN $2::bigint <= 0 THEN c.sum + $2::bigint WHEN c.sum <= $3::bigint - $2::bigint THEN c.sum + $2::bigint ELSE c.sum END,
	added = CASE WHEN $2::bigint <= 0 THEN true ELSE c.sum <= $3::bigint - $2::bigint END
RETURNING sum, added`

// Count adds to a counter.
func (s *Store) Count(ctx context.Context, counter string, n, most int64) (sum int64, added bool, err error) {
	if n == 0 { // reading costs no commit
		sums, err := collect(ctx, s, pgx.RowTo[int64], `SELECT sum FROM @counters WHERE name = $1`, counter)
		if err != nil {
			return 0, false, fmt.Errorf("postgres: read the counter %s: %w", counter, err)
		}
		for _, sum = range sums {
		}
		return sum, true, nil
	}
	if err := s.write(ctx, false, addToCounter, []any{counter, n, most}, &sum, &added); err != nil {
		return 0, false, fmt.Errorf("postgres: add to the counter %s: %w", counter, err)
	}
	return sum, added, nil
}
