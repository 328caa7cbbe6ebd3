package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsDrivers = (*Store)(nil)

// registerDriver also removes the registrations that have expired. A row that another
// process renews meanwhile is skipped.
var registerDriver = `
WITH expired AS (DELETE FROM @drivers WHERE owner IN (
	SELECT owner FROM @drivers WHERE expiry <= ` + dbStart("$4") + ` AND owner <> $1 FOR UPDATE SKIP LOCKED))
INSERT INTO @drivers AS d (owner, expiry, body) VALUES ($1, ` + dbNow("$4") + ` + $3, $2)
ON CONFLICT (owner) DO UPDATE SET expiry = excluded.expiry, body = excluded.body
RETURNING 1`

// Register registers a driver.
func (s *Store) Register(ctx context.Context, d journal.Driver, ttl time.Duration) error {
	body, err := json.Marshal(d)
	if err == nil {
		var one int
		_, given := s.time()
		err = s.write(ctx, true, registerDriver, []any{d.Owner, body, ttl.Nanoseconds(), given}, &one)
	}
	if err != nil {
		return fmt.Errorf("postgres: register the driver %s: %w", d.Owner, err)
	}
	return nil
}

// Drivers returns the drivers.
func (s *Store) Drivers(ctx context.Context) ([]journal.Driver, error) {
	_, given := s.time()
	live, err := collect(ctx, s, func(row pgx.CollectableRow) (d journal.Driver, err error) {
		var body []byte
		if err = row.Scan(&body); err == nil {
			err = json.Unmarshal(body, &d)
		}
		return d, err
	}, `SELECT body FROM @drivers WHERE expiry > `+dbStart("$1")+` ORDER BY owner COLLATE "C"`, given)
	if err != nil {
		return nil, fmt.Errorf("postgres: read the drivers: %w", err)
	}
	return live, nil
}
