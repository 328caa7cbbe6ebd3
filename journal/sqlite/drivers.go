package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// drivers is made by the first process that registers, as [snapshots] is.
const drivers = `
CREATE TABLE IF NOT EXISTS drivers (
	owner  TEXT PRIMARY KEY,
	expiry INTEGER NOT NULL,
	body   BLOB NOT NULL
) WITHOUT ROWID;
`

const hasDrivers = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'drivers'`

var _ journal.KeepsDrivers = (*Store)(nil)

// Register registers a driver, and removes the registrations that have expired.
func (s *Store) Register(ctx context.Context, d journal.Driver, ttl time.Duration) error {
	body, err := json.Marshal(d)
	if err == nil {
		err = s.write(ctx, func(c *conn) error {
			now := s.now()
			if err := c.script(drivers); err != nil {
				return err
			}
			if _, err := c.exec(`DELETE FROM drivers WHERE expiry <= ?1`, nanos(now)); err != nil {
				return err
			}
			_, err := c.exec(`INSERT OR REPLACE INTO drivers (owner, expiry, body) VALUES (?1, ?2, ?3)`, d.Owner, nanos(now.Add(ttl)), body)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("sqlite: register the driver %s: %w", d.Owner, err)
	}
	return nil
}

// Drivers returns the drivers.
func (s *Store) Drivers(ctx context.Context) (live []journal.Driver, err error) {
	var there int
	err = s.readers.QueryRowContext(ctx, hasDrivers).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	var rows *sql.Rows
	if err == nil {
		rows, err = s.readers.QueryContext(ctx, `SELECT body FROM drivers WHERE expiry > ?1 ORDER BY owner`, nanos(s.now()))
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite: read the drivers: %w", s.cause(err))
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		var d journal.Driver
		if err = rows.Scan(&body); err == nil {
			err = json.Unmarshal(body, &d)
		}
		if err != nil {
			break
		}
		live = append(live, d)
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		return nil, fmt.Errorf("sqlite: read the drivers: %w", s.cause(err))
	}
	return live, nil
}
