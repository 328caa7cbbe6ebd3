package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// counters is made by the first process that counts, as [snapshots] is.
const counters = `
CREATE TABLE IF NOT EXISTS counters (
	name TEXT PRIMARY KEY,
	sum  INTEGER NOT NULL
) WITHOUT ROWID;
`

var _ journal.KeepsCounters = (*Store)(nil)

// Count adds to a counter.
func (s *Store) Count(ctx context.Context, counter string, n, most int64) (sum int64, added bool, err error) {
	err = s.write(ctx, func(c *conn) error {
		if err := c.script(counters); err != nil {
			return err
		}
		if sum, _, err = c.queryInt(`SELECT sum FROM counters WHERE name = ?1`, counter); err != nil {
			return err
		}
		if added = n <= 0 || sum <= most-n; !added || n == 0 {
			return nil
		}
		sum += n
		_, err = c.exec(`INSERT INTO counters (name, sum) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET sum = excluded.sum`, counter, sum)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("sqlite: add to the counter %s: %w", counter, err)
	}
	return sum, added, nil
}
