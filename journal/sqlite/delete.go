package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/journal"
)

// deleteStep bounds how much one transaction of a deletion frees, so that
// appends never wait long for it.
const deleteStep = 256

// A run that is deleted may own the newest pos. Its row then stays, empty and
// without a run (rid 0), until a newer one is there, so that no pos is ever
// given twice.
const (
	deleteEvents = `
DELETE FROM events WHERE pos IN (
	SELECT pos FROM events WHERE rid IN (0, ?1) AND pos < (SELECT max(pos) FROM events) LIMIT ?2)`
	buryEvent = `
UPDATE events SET rid = 0, seq = pos, type = '', body = x'' WHERE rid = ?1`
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

// Delete removes a run that nobody drives: its row at once, the rest in steps.
// What a crash leaves of a deletion is removed by the next one.
func (s *Store) Delete(ctx context.Context, run string) error {
	err := s.write(ctx, func(c *conn) error { return c.hideRun(run, nanos(s.now())) })
	for more := err == nil; more && err == nil; {
		// The run is gone for everybody; a context that ends does not change
		// that, and what is left is for the next deletion.
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

// hideRun takes a run out of everybody's sight.
func (c *conn) hideRun(run string, now int64) error {
	row, ok, err := c.queryRow(`SELECT rid, owner <> '' AND expiry > ?2 FROM runs WHERE id = ?1`, run, now)
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
	for _, q := range []string{
		`INSERT INTO deleted (rid) VALUES (?1)`, `DELETE FROM inbox WHERE rid = ?1`, `DELETE FROM runs WHERE rid = ?1`,
	} {
		if _, err := c.exec(q, rid); err != nil {
			return err
		}
	}
	return nil
}

// unshared refuses a run whose events are its forks' as well.
func (c *conn) unshared(run string) error {
	row, _, err := c.queryRow(`SELECT group_concat(id) FROM (SELECT id FROM runs WHERE fork_of = ?1 ORDER BY id)`, run)
	if err != nil {
		return err
	}
	if forks, _ := row[0].(string); forks != "" {
		return &journal.ForkedError{Run: run, Forks: strings.Split(forks, ",")}
	}
	return nil
}

// sweep frees a part of what deleted runs have left; more is false when there
// is nothing left.
func (c *conn) sweep() (more bool, err error) {
	rid, ok, err := c.queryInt(`SELECT rid FROM deleted LIMIT 1`)
	if err != nil || !ok {
		return false, err
	}
	if n, err := c.exec(deleteEvents, rid, int64(deleteStep)); err != nil || n == deleteStep {
		return true, err
	}
	if _, err := c.exec(buryEvent, rid); err != nil {
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
