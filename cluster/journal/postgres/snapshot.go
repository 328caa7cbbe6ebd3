package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsSnapshots = (*Store)(nil)

// keepSnapshot returns a row also for a run that does not exist. The lock on the row of
// runs waits for a deletion of the run.
const keepSnapshot = `
WITH run AS (SELECT rid FROM @runs WHERE id = $1 FOR KEY SHARE),
	kept AS (
		INSERT INTO @snapshots (rid, name, version, seq, head, body) SELECT rid, $2, $3, $4, $5, $6 FROM run
		ON CONFLICT (rid, name) DO UPDATE SET version = excluded.version, seq = excluded.seq, head = excluded.head, body = excluded.body)
SELECT count(*) FROM run`

// Keep stores a snapshot of a run.
func (s *Store) Keep(ctx context.Context, run, name string, kept journal.Snapshot) error {
	var runs int
	if err := s.write(ctx, true, keepSnapshot, []any{run, name, kept.Version, kept.Seq, kept.Head, kept.Body}, &runs); err != nil {
		return fmt.Errorf("postgres: keep a snapshot of run %s: %w", run, err)
	}
	return nil
}

// Kept returns a snapshot of a run.
func (s *Store) Kept(ctx context.Context, run, name string) (kept journal.Snapshot, err error) {
	err = s.row(ctx, `SELECT version, seq, head, body FROM @snapshots WHERE rid = (SELECT rid FROM @runs WHERE id = $1) AND name = $2`,
		[]any{run, name}, &kept.Version, &kept.Seq, &kept.Head, &kept.Body)
	if errors.Is(err, journal.ErrNotFound) {
		return journal.Snapshot{}, nil
	}
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("postgres: read a snapshot of run %s: %w", run, err)
	}
	return kept, nil
}
