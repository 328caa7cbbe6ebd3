package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

// snapshots is made by the first process that keeps one: a file of this format need not
// have it, and a program that does not know it reads the file all the same.
const snapshots = `
CREATE TABLE IF NOT EXISTS snapshots (
	rid     INTEGER NOT NULL,
	name    TEXT NOT NULL,
	version TEXT NOT NULL,
	seq     INTEGER NOT NULL,
	head    TEXT NOT NULL,
	body    BLOB NOT NULL,
	PRIMARY KEY (rid, name)
);
`

const hasSnapshots = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'snapshots'`

var _ journal.KeepsSnapshots = (*Store)(nil)

// Keep stores a snapshot of a run.
func (s *Store) Keep(ctx context.Context, run, name string, kept journal.Snapshot) error {
	err := s.write(ctx, func(c *conn) error {
		rid, err := c.rid(run)
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.script(snapshots); err != nil {
			return err
		}
		_, err = c.exec(`INSERT OR REPLACE INTO snapshots (rid, name, version, seq, head, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`,
			rid, name, kept.Version, kept.Seq, kept.Head, kept.Body)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: keep a snapshot of run %s: %w", run, err)
	}
	return nil
}

// Kept returns a snapshot of a run.
func (s *Store) Kept(ctx context.Context, run, name string) (kept journal.Snapshot, err error) {
	var there int
	err = s.readers.QueryRowContext(ctx, hasSnapshots).Scan(&there)
	if err == nil {
		err = s.readers.QueryRowContext(ctx, `
SELECT version, seq, head, body FROM snapshots WHERE rid = (SELECT rid FROM runs WHERE id = ?1) AND name = ?2`, run, name).Scan(
			&kept.Version, &kept.Seq, &kept.Head, &kept.Body)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return journal.Snapshot{}, nil
	}
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("sqlite: read a snapshot of run %s: %w", run, s.cause(err))
	}
	return kept, nil
}

// forget deletes the snapshots of a run.
func (c *conn) forget(rid any) error {
	_, some, err := c.queryRow(hasSnapshots)
	if err != nil || !some {
		return err
	}
	_, err = c.exec(`DELETE FROM snapshots WHERE rid = ?1`, rid)
	return err
}
