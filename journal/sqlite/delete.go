package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/journal"
)

// deleteStep bounds how many commits one transaction of a deletion deletes, so that
// appends never wait long for it.
const deleteStep = 64

// A deleted run may own the newest pos. Its row then stays, empty and without a run
// (rid 0), until a newer one exists, so that no pos is used twice.
const (
	// deletePart deletes a run's events up to a pos (rid, first, pos); endOfPart
	// returns that pos (rid, first, last, how many).
	endOfPart = `
WITH RECURSIVE block (n) AS (SELECT ?1 >> 10 UNION ALL SELECT n + 1 FROM block WHERE n < ?2 >> 10)
SELECT count(*), max(pos) FROM (
	SELECT pos FROM block CROSS JOIN commits INDEXED BY commits_block ON pos >> 10 = n AND rid = ?3
	WHERE pos < (SELECT max(pos) FROM commits) LIMIT ?4)`
	deletePart = `
WITH RECURSIVE block (n) AS (SELECT ?1 >> 10 UNION ALL SELECT n + 1 FROM block WHERE n < ?2 >> 10)
DELETE FROM commits WHERE pos IN (
	SELECT pos FROM block CROSS JOIN commits INDEXED BY commits_block ON pos >> 10 = n AND rid = ?3 WHERE pos <= ?2)`
	deleteBuried = `
DELETE FROM commits WHERE rid = 0 AND pos < (SELECT max(pos) FROM commits) AND pos = (SELECT last FROM deleted WHERE rid = 0)`
	buryEvent = `
UPDATE commits SET rid = 0, seq = pos, events = 0, kinds = 0, body = x'' WHERE rid = ?1 AND pos = (SELECT max(pos) FROM commits)`
	noteBuried = `
INSERT OR REPLACE INTO deleted (rid, first, last) SELECT 0, max(pos), max(pos) FROM commits`
	deleteBlobs = `
DELETE FROM blobs WHERE digest IN (
	SELECT digest FROM blob_runs AS mine WHERE rid = ?1
	AND NOT EXISTS (SELECT 1 FROM blob_runs AS other WHERE other.digest = mine.digest AND other.rid <> ?1)
	AND EXISTS (SELECT 1 FROM blobs WHERE blobs.digest = mine.digest)
	LIMIT ?2)`
	deleteBlobRuns = `
DELETE FROM blob_runs WHERE rid = ?1`
)

// blobStep is deleteStep for blobs, which are larger than events.
const blobStep = 16

// Delete removes a run without a driver: its row at once, the rest in steps. The next
// deletion completes one that a crash interrupted.
func (s *Store) Delete(ctx context.Context, run string) error {
	err := s.write(ctx, func(c *conn) error { return c.hideRun(run, nanos(s.now())) })
	for more := err == nil; more && err == nil; {
		// The run is already gone; if the context ends, the next deletion completes
		// this one.
		if ctx.Err() != nil {
			break
		}
		err = s.write(ctx, func(c *conn) (err error) {
			more, err = c.sweep()
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("sqlite: delete run %s: %w", run, err)
	}
	return nil
}

// hideRun deletes the row of a run, which hides it.
func (c *conn) hideRun(run string, now int64) error {
	row, ok, err := c.queryRow(`SELECT rid, owner <> '' AND expiry > ?2 FROM runs CROSS JOIN heads USING (rid) WHERE id = ?1`, run, now)
	switch {
	case err != nil:
		return err
	case !ok:
		return journal.ErrNotFound
	case row[1] == int64(1):
		return c.heldBy(run)
	}
	if err := c.unshared(run); err != nil {
		return err
	}
	rid := row[0]
	delete(c.rids, run)
	if err := c.erase(`DELETE FROM inbox WHERE rid = ?1`, rid); err != nil {
		return err
	}
	if err := c.forget(rid); err != nil {
		return err
	}
	for _, q := range []string{
		`INSERT INTO deleted (rid, first, last) SELECT rid, first, last FROM runs CROSS JOIN heads USING (rid) WHERE rid = ?1`,
		`DELETE FROM runs WHERE rid = ?1`, `DELETE FROM heads WHERE rid = ?1`,
	} {
		if _, err := c.exec(q, rid); err != nil {
			return err
		}
	}
	return nil
}

// unshared rejects a run that shares its events with forks.
func (c *conn) unshared(run string) error {
	row, _, err := c.queryRow(`SELECT group_concat(id) FROM (SELECT id FROM runs WHERE fork_of = ?1 AND fork_of <> '' ORDER BY id)`, run)
	if err != nil {
		return err
	}
	if forks, _ := row[0].(string); forks != "" {
		return &journal.ForkedError{Run: run, Forks: strings.Split(forks, ",")}
	}
	return nil
}

// sweep deletes a part of the events of deleted runs; more is false if nothing is left.
func (c *conn) sweep() (more bool, err error) {
	row, ok, err := c.queryRow(`SELECT rid, first, last FROM deleted WHERE rid <> 0 LIMIT 1`)
	if err != nil || !ok {
		return false, err
	}
	rid, _ := row[0].(int64)
	if full, err := c.sweepEvents(rid, row[1], row[2]); err != nil || full {
		return true, err
	}
	if err := c.bury(rid); err != nil {
		return true, err
	}
	if n, err := c.exec(deleteBlobs, rid, int64(blobStep)); err != nil || n == blobStep {
		return true, err
	}
	if _, err := c.exec(deleteBlobRuns, rid); err != nil {
		return true, err
	}
	_, err = c.exec(`DELETE FROM deleted WHERE rid = ?1`, rid)
	return true, err
}

// sweepEvents deletes up to deleteStep commits of a run, except the newest of the file;
// full reports that there may be more.
func (c *conn) sweepEvents(rid int64, first, last any) (full bool, err error) {
	part, _, err := c.queryRow(endOfPart, first, last, rid, int64(deleteStep))
	if err != nil || part[0] == int64(0) {
		return false, err
	}
	if _, err := c.exec(deletePart, first, part[1], rid); err != nil || part[0] != int64(deleteStep) {
		return false, err
	}
	_, err = c.exec(`UPDATE deleted SET first = ?1 WHERE rid = ?2`, part[1], rid)
	return true, err
}

// bury empties the newest event if it is the run's, and deletes the previously emptied
// one if it is no longer the newest.
func (c *conn) bury(rid int64) error {
	if n, err := c.exec(deleteBuried); err != nil {
		return err
	} else if n > 0 {
		if _, err := c.exec(`DELETE FROM deleted WHERE rid = 0`); err != nil {
			return err
		}
	}
	n, err := c.exec(buryEvent, rid)
	if err == nil && n > 0 {
		_, err = c.exec(noteBuried)
	}
	return err
}
