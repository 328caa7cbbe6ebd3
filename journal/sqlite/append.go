package sqlite

import (
	"fmt"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// create adds a run and its first records.
func (c *conn) create(row journal.Run, b *journal.Batch) (int64, error) {
	if err := consecutive(b.Records, row.ForkSeq); err != nil {
		return 0, err
	}
	row = row.Placed()
	if p := b.Parent; p.Run != "" {
		_, ok, err := c.queryInt(`SELECT epoch FROM runs CROSS JOIN heads USING (rid) WHERE id = ?1 AND owner = ?2 AND epoch = ?3`, p.Run, p.Owner, p.Epoch)
		if err == nil && !ok {
			err = fmt.Errorf("its parent %s: %w", p.Run, journal.ErrStale)
		}
		if err != nil {
			return 0, err
		}
	}
	if row.ForkOf != "" {
		seq, ok, err := c.queryInt(`SELECT seq FROM runs CROSS JOIN heads USING (rid) WHERE id = ?1`, row.ForkOf)
		if err == nil && (!ok || seq < row.ForkSeq) {
			err = fmt.Errorf("event %d of run %s: %w", row.ForkSeq, row.ForkOf, journal.ErrNotFound)
		}
		if err != nil {
			return 0, err
		}
	}
	newest, err := c.newestPos()
	if err != nil {
		return 0, err
	}
	shown, err := showingOf(&b.Status)
	if err != nil {
		return 0, err
	}
	rid, ok, err := c.insert(insertRun, row.ID, row.Parent, row.Kind, row.Name, nanos(row.Created),
		string(b.Status.State), b.Status.Detail, bytesOrNil(b.Status.Outcome), row.ForkOf, row.ForkSeq,
		newest+1, row.Root, int64(row.Depth), shown.waitsOrNil())
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, journal.ErrExists
	}
	n := int64(len(b.Records))
	if _, err := c.exec(insertHead, rid, ownerAfter(b), expiryAfter(b), row.ForkSeq+n, b.Head, newest+n,
		int64(b.Status.Cycles), nanos(b.Time), shown.digest()); err != nil {
		return 0, err
	}
	c.rids[row.ID] = rid
	return c.insertRecords(rid, b)
}

func ownerAfter(b *journal.Batch) string {
	if b.Release {
		return ""
	}
	return b.Lease.Owner
}

func expiryAfter(b *journal.Batch) int64 {
	if b.Release {
		return 0
	}
	return nanos(b.Lease.Expiry)
}

// append is the only place where events of an open run are written to the file.
func (c *conn) append(b *journal.Batch) (int64, error) {
	rid, err := c.rid(b.Lease.Run)
	if err != nil {
		return 0, err
	}
	var before int64
	if len(b.Records) > 0 {
		before = b.Records[0].Seq - 1
	}
	if err := consecutive(b.Records, before); err != nil {
		return 0, err
	}
	newest, err := c.newestPos()
	if err != nil {
		return 0, err
	}
	if err := c.move(rid, newest, b); err != nil {
		return 0, err
	}
	if b.Release {
		if _, err := c.exec(releaseRun, b.Lease.Run, b.Lease.Owner, b.Lease.Epoch); err != nil {
			return 0, err
		}
	}
	return c.insertRecords(rid, b)
}

// move moves the head of a run from one event to another, if the lease is valid, and
// updates what lists show of the run if that has changed.
func (c *conn) move(rid, newest int64, b *journal.Batch) error {
	shown, err := showingOf(&b.Status)
	if err != nil {
		return err
	}
	if len(b.Records) > 0 && b.Status.State != journal.Ended {
		if moved, err := c.moveHead(moveHead, rid, newest, shown, b); moved || err != nil {
			return err
		}
	}
	query := moveHeadAlso
	if len(b.Records) == 0 {
		query = stayHead
	}
	moved, err := c.moveHead(query, rid, newest, shown, b)
	if err != nil {
		return err
	}
	if !moved {
		return c.whyNot(b.Lease.Run)
	}
	_, err = c.exec(showRun, string(b.Status.State), b.Status.Detail, bytesOrNil(b.Status.Outcome), shown.waitsOrNil(), rid)
	return err
}

// moveHead runs one of the statements that change a run's head, and reports whether the
// lease is valid.
func (c *conn) moveHead(query string, rid, newest int64, shown showing, b *journal.Batch) (moved bool, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return false, err
	}
	n := int64(len(b.Records))
	if n > 0 {
		s.bindInt(b.Records[n-1].Seq)
		s.bindText(b.Head)
		s.bindInt(newest + n)
	}
	s.bindInt(int64(b.Status.Cycles))
	s.bindInt(nanos(b.Time))
	if query != moveHead {
		s.bindInt(shown.digest())
	}
	s.bindInt(rid)
	s.bindInt(b.Lease.Epoch)
	s.bindText(b.Lease.Owner)
	if n > 0 {
		s.bindInt(b.Records[0].Seq - 1)
	}
	if query == moveHead {
		s.bindInt(shown.digest())
	}
	changed, err := c.run(s)
	return changed > 0, err
}

// consecutive rejects records with gaps in their numbers.
func consecutive(records []journal.Record, before int64) error {
	for i, r := range records {
		if want := before + int64(i) + 1; r.Seq != want {
			return fmt.Errorf("seq %d where %d is next: %w", r.Seq, want, journal.ErrStale)
		}
	}
	return nil
}

// insertRecords writes the records of a batch after the newest pos, and returns the pos
// of the first record.
func (c *conn) insertRecords(rid int64, b *journal.Batch) (first int64, err error) {
	if err := c.insertCommits(rid, c.newest, b.Records); err != nil {
		return 0, err
	}
	if len(b.Records) > 0 {
		first = c.newest + 1
		c.newest += int64(len(b.Records))
	}
	for _, blob := range b.Blobs {
		if _, err := c.exec(insertBlob, blob.Digest, blob.Bytes); err != nil {
			return 0, err
		}
		if _, err := c.exec(insertBlobRun, blob.Digest, rid); err != nil {
			return 0, err
		}
	}
	for _, id := range b.Consumed {
		if err := c.erase(consumeCommand, id, rid); err != nil {
			return 0, err
		}
	}
	if b.Status.State == journal.Ended {
		return first, c.emptyInbox(rid)
	}
	return first, nil
}

// emptyInbox deletes commands that no driver will read.
func (c *conn) emptyInbox(rid int64) error {
	if _, some, err := c.queryInt(`SELECT 1 FROM inbox WHERE rid = ?1 LIMIT 1`, rid); err != nil || !some {
		return err
	}
	return c.erase(`DELETE FROM inbox WHERE rid = ?1`, rid)
}

// emptyEndedInboxes deletes commands that an older version left when a run ended.
func (c *conn) emptyEndedInboxes() error {
	const left = `SELECT i.id FROM inbox i CROSS JOIN runs r ON r.rid = i.rid WHERE r.state = 'ended'`
	if _, some, err := c.queryInt(left + ` LIMIT 1`); err != nil || !some {
		return err
	}
	return c.erase(`DELETE FROM inbox WHERE id IN (` + left + `)`)
}

// whyNot explains an append that its fence refused.
func (c *conn) whyNot(run string) error {
	row, ok, err := c.queryRow(`SELECT state FROM runs WHERE id = ?1`, run)
	switch {
	case err != nil:
		return err
	case !ok:
		delete(c.rids, run)
		return journal.ErrNotFound
	case row[0] == string(journal.Ended):
		return journal.ErrEnded
	}
	return journal.ErrStale
}

func (c *conn) heldBy(run string) error {
	row, ok, err := c.queryRow(`SELECT owner, expiry FROM runs CROSS JOIN heads USING (rid) WHERE id = ?1`, run)
	switch {
	case err != nil:
		return err
	case !ok:
		return journal.ErrNotFound
	}
	owner, _ := row[0].(string)
	expiry, _ := row[1].(int64)
	return &journal.HeldError{Run: run, Owner: owner, Expiry: time.Unix(0, expiry).UTC()}
}
