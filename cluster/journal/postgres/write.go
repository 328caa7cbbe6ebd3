package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/journal"
)

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// consecutive rejects records with a gap.
func consecutive(records []journal.Record, before int64) error {
	for i, r := range records {
		if want := before + int64(i) + 1; r.Seq != want {
			return fmt.Errorf("seq %d where %d is next: %w", r.Seq, want, journal.ErrStale)
		}
	}
	return nil
}

// Create adds a run with its first records and its lease.
func (s *Store) Create(ctx context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	row = row.Placed()
	b.Lease.Run, b.Lease.Epoch = row.ID, 1
	err := consecutive(b.Records, row.ForkSeq)
	o := &op{row: &row, batch: b}
	if err == nil {
		err = s.append(ctx, o)
	}
	if err != nil {
		return journal.Lease{}, 0, fmt.Errorf("postgres: create run %s: %w", row.ID, err)
	}
	return b.Lease, o.first, nil
}

// Append writes a batch durably, together with the pending batches of other runs.
func (s *Store) Append(ctx context.Context, b journal.Batch) (int64, error) {
	o := &op{batch: b}
	var err error
	if len(b.Records) > 0 {
		err = consecutive(b.Records, b.Records[0].Seq-1)
	}
	if err == nil {
		err = s.append(ctx, o)
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: append to run %s: %w", b.Lease.Run, err)
	}
	return o.first, nil
}

func (s *Store) append(ctx context.Context, o *op) error {
	if s.writer == nil {
		return journal.ErrReadOnly
	}
	return s.writer.do(ctx, o)
}

// write runs one statement that returns a row. It fails if the store is read-only.
func (s *Store) write(ctx context.Context, repeatable bool, sql string, args []any, into ...any) error {
	if s.writer == nil {
		return journal.ErrReadOnly
	}
	if err := s.config.acked.err(); err != nil {
		return err
	}
	return s.try(ctx, repeatable, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.config.at(sql), args...).Scan(into...)
	})
}

// notifying returns a statement about one run that notifies the readers in all
// processes.
func notifying(sql, channel, payload, returns string) string {
	return `WITH changed AS (` + sql + `) SELECT ` + returns + ` FROM changed, pg_notify(` + channel + `, ` + payload + `)`
}

const acquireRun = `SELECT taken, full_tenant FROM @acquire($1, $2, $3, $4, $5, $6)`

// Acquire acquires a free or expired lease, or one that dead held.
func (s *Store) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	local, given := s.time()
	l := journal.Lease{Run: run, Owner: owner, Expiry: local.Add(ttl)}
	var full bool
	err := s.write(ctx, true, acquireRun, []any{s.watch.channel, run, owner, dead, given, ttl.Nanoseconds()}, &l.Epoch, &full)
	if errors.Is(err, journal.ErrNotFound) {
		err = s.heldBy(ctx, run)
	}
	if full {
		err = journal.ErrTenantFull
	}
	if err != nil {
		return journal.Lease{}, fmt.Errorf("postgres: take the lease of run %s: %w", run, err)
	}
	s.watch.Notify("")
	return l, nil
}

func (s *Store) heldBy(ctx context.Context, run string) error {
	row, err := s.Run(ctx, run)
	if err != nil {
		return err
	}
	return &journal.HeldError{Run: run, Owner: row.Owner, Expiry: row.Expiry}
}

var renewRun = `
UPDATE @runs SET expiry = ` + dbNow("$4") + ` + $5 WHERE id = $1 AND owner = $2 AND epoch = $3 RETURNING epoch`

// Renew extends a lease.
func (s *Store) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	local, given := s.time()
	l.Expiry = local.Add(ttl)
	err := s.write(ctx, true, renewRun, []any{l.Run, l.Owner, l.Epoch, given, ttl.Nanoseconds()}, &l.Epoch)
	if errors.Is(err, journal.ErrNotFound) {
		err = journal.ErrStale
	}
	if err != nil {
		return l, fmt.Errorf("postgres: renew the lease of run %s: %w", l.Run, err)
	}
	return l, nil
}

var releaseRun = notifying(`
UPDATE @runs SET owner = '', expiry = 0 WHERE id = $2 AND owner = $3 AND epoch = $4 RETURNING epoch`, "$1", "''", "epoch")

// Release releases a lease.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	err := s.write(ctx, true, releaseRun, []any{s.watch.channel, l.Run, l.Owner, l.Epoch}, &l.Epoch)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("postgres: release the lease of run %s: %w", l.Run, err)
	}
	s.watch.Notify("")
	return nil
}

// sendCommand locks the run's row, so that the run cannot end in the meantime.
var sendCommand = notifying(`
INSERT INTO @inbox (rid, body) SELECT rid, $3 FROM (SELECT rid, state FROM @runs WHERE id = $2 FOR NO KEY UPDATE) r WHERE state <> 'ended'
RETURNING id`, "$1", "$2", "id")

// Send adds a command to a run's inbox. After an error, the command may exist
// nevertheless if the connection was lost.
func (s *Store) Send(ctx context.Context, c journal.Command) (int64, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return 0, fmt.Errorf("postgres: encode command: %w", err)
	}
	var id int64
	err = s.write(ctx, false, sendCommand, []any{s.watch.channel, c.Run, body}, &id)
	if errors.Is(err, journal.ErrNotFound) {
		if _, err = s.Run(ctx, c.Run); err == nil {
			err = journal.ErrEnded
		}
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: send %s to run %s: %w", c.Kind, c.Run, err)
	}
	s.watch.Notify("", c.Run)
	return id, nil
}

const (
	// deleteStep and blobStep bound the rows that one statement of a deletion frees.
	deleteStep, blobStep = 1000, 16
	lockRun              = `SELECT rid, owner <> '' AND expiry > ` + "%s" + ` FROM @runs WHERE id = $1 FOR UPDATE`
	selectForks          = `SELECT id FROM @runs WHERE fork_of = $1 AND fork_of <> '' ORDER BY id`
	hideRun              = `
WITH gone AS (DELETE FROM @runs WHERE rid = $1 RETURNING rid),
	commands AS (DELETE FROM @inbox WHERE rid = $1)
INSERT INTO @deleted (rid) SELECT rid FROM gone`
	sweepLog = `
DELETE FROM @log WHERE pos IN (SELECT pos FROM @log WHERE rid = (SELECT min(rid) FROM @deleted) LIMIT $1)`
	// lockBlobs waits until all appends that refer to the same contents have committed,
	// so that the next statement sees their references.
	lockBlobs = `
SELECT digest FROM @blobs WHERE digest IN (SELECT digest FROM @blob_runs WHERE rid = (SELECT min(rid) FROM @deleted) ORDER BY digest LIMIT $1)
ORDER BY digest FOR UPDATE`
	sweepBlobs = `
WITH mine AS (SELECT digest, rid FROM @blob_runs WHERE rid = (SELECT min(rid) FROM @deleted) AND digest = ANY ($1)),
	named AS (DELETE FROM @blob_runs b USING mine WHERE b.digest = mine.digest AND b.rid = mine.rid)
DELETE FROM @blobs b USING mine WHERE b.digest = mine.digest
	AND NOT EXISTS (SELECT 1 FROM @blob_runs o WHERE o.digest = mine.digest AND o.rid <> mine.rid)`
	forgetRun = `DELETE FROM @deleted WHERE rid = (SELECT min(rid) FROM @deleted)
	AND NOT EXISTS (SELECT 1 FROM @log l WHERE l.rid = @deleted.rid) AND NOT EXISTS (SELECT 1 FROM @blob_runs b WHERE b.rid = @deleted.rid)`
)

// Delete deletes a run without a driver: its row at once, the rest in steps. If a crash
// interrupts it, the next deletion continues.
func (s *Store) Delete(ctx context.Context, run string) error {
	err := journal.ErrReadOnly
	if s.writer != nil {
		err = s.try(ctx, false, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.hide(ctx, tx, run) })
		})
	}
	if err == nil {
		s.watch.Notify("")
		err = s.sweep(ctx)
	}
	if err != nil {
		return fmt.Errorf("postgres: delete run %s: %w", run, err)
	}
	return nil
}

// hide makes a run invisible.
func (s *Store) hide(ctx context.Context, tx pgx.Tx, run string) error {
	var rid int64
	var held bool
	_, given := s.time()
	if err := tx.QueryRow(ctx, s.config.at(fmt.Sprintf(lockRun, dbNow("$2"))), run, given).Scan(&rid, &held); err != nil {
		return err
	}
	if held {
		return s.heldBy(ctx, run)
	}
	rows, err := tx.Query(ctx, s.config.at(selectForks), run)
	if err != nil {
		return err
	}
	forks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(forks) > 0 {
		return &journal.ForkedError{Run: run, Forks: forks}
	}
	if _, err := tx.Exec(ctx, s.config.at(hideRun), rid); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `SELECT pg_notify($1, '')`, s.watch.channel)
	return err
}

// sweep frees the storage of deleted runs. If ctx ends, the next deletion continues;
// the runs are already invisible.
func (s *Store) sweep(ctx context.Context) error {
	for ctx.Err() == nil {
		left := int64(0)
		err := s.try(context.WithoutCancel(ctx), true, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.sweepStep(ctx, tx, &left) })
		})
		if err != nil || left == 0 {
			return err
		}
	}
	return nil
}

// sweepStep frees a part of the oldest deleted run. left receives the number of
// remaining deleted runs.
func (s *Store) sweepStep(ctx context.Context, tx pgx.Tx, left *int64) error {
	tag, err := tx.Exec(ctx, s.config.at(sweepLog), deleteStep)
	if err == nil && tag.RowsAffected() == 0 {
		err = s.sweepContents(ctx, tx)
	}
	if err != nil {
		return err
	}
	return tx.QueryRow(ctx, s.config.at(`SELECT count(*) FROM @deleted`)).Scan(left)
}

// sweepContents frees contents that no other run refers to, and forgets the run when
// none are left.
func (s *Store) sweepContents(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, s.config.at(lockBlobs), blobStep)
	if err != nil {
		return err
	}
	digests, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		_, err = tx.Exec(ctx, s.config.at(sweepBlobs), digests)
	}
	if err == nil {
		_, err = tx.Exec(ctx, s.config.at(forgetRun))
	}
	return err
}
