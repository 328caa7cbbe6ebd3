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
	if row.ForkOf != "" {
		seq, ok, err := c.queryInt(`SELECT seq FROM runs WHERE id = ?1`, row.ForkOf)
		if err == nil && (!ok || seq < row.ForkSeq) {
			err = fmt.Errorf("event %d of run %s: %w", row.ForkSeq, row.ForkOf, journal.ErrNotFound)
		}
		if err != nil {
			return 0, err
		}
	}
	waits, err := encodeWaits(b.Status.Waits)
	if err != nil {
		return 0, err
	}
	rid, ok, err := c.insert(insertRun, row.ID, row.Parent, row.Kind, row.Name, nanos(row.Created), nanos(b.Time),
		string(b.Status.State), b.Status.Detail, int64(b.Status.Cycles), bytesOrNil(b.Status.Outcome),
		row.ForkSeq+int64(len(b.Records)), b.Head, ownerAfter(b), expiryAfter(b), row.ForkOf, row.ForkSeq,
		int64(len(b.Records)), row.Root, int64(row.Depth), textOrNil(waits))
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, journal.ErrExists
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

// append is the one place where events of a run that is going on reach the
// file.
func (c *conn) append(b *journal.Batch) (int64, error) {
	rid, err := c.rid(b.Lease.Run)
	if err != nil {
		return 0, err
	}
	n := int64(len(b.Records))
	if n == 0 {
		return c.appendStatus(rid, b)
	}
	before, last := b.Records[0].Seq-1, b.Records[n-1].Seq
	if err := consecutive(b.Records, before); err != nil {
		return 0, err
	}
	end := c.newest + n
	if err := c.updateRun(rid, before, last, end, b.Head, b); err != nil {
		return 0, err
	}
	first, err := c.insertRecords(rid, b)
	if err == nil && c.newest != end {
		_, err = c.exec(moveEnd, c.newest, rid)
	}
	return first, err
}

// appendStatus changes a run's row and its inbox on top of whatever event is
// the last.
func (c *conn) appendStatus(rid int64, b *journal.Batch) (int64, error) {
	row, ok, err := c.queryRow(`SELECT seq, head, last FROM runs WHERE rid = ?1`, rid)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, c.whyNot(b.Lease.Run)
	}
	seq, _ := row[0].(int64)
	head, _ := row[1].(string)
	end, _ := row[2].(int64)
	if err := c.updateRun(rid, seq, seq, end, head, b); err != nil {
		return 0, err
	}
	return c.insertRecords(rid, b)
}

// updateRun moves a run's row on from one event to another, if the lease holds;
// end is the last one's pos, as far as that is known before it is inserted.
func (c *conn) updateRun(rid, before, last, end int64, head string, b *journal.Batch) error {
	waits, err := encodeWaits(b.Status.Waits)
	if err != nil {
		return err
	}
	s, err := c.prepare(updateRun)
	if err != nil {
		return err
	}
	s.bindInt(last)
	s.bindText(head)
	s.bindText(string(b.Status.State))
	s.bindText(b.Status.Detail)
	s.bindInt(int64(b.Status.Cycles))
	if len(b.Status.Outcome) == 0 {
		s.bindNull()
	} else {
		s.bindBlob(b.Status.Outcome)
	}
	if waits == nil {
		s.bindNull()
	} else {
		s.bindText(*waits)
	}
	s.bindInt(nanos(b.Time))
	s.bindInt(end)
	s.bindInt(rid)
	s.bindInt(b.Lease.Epoch)
	s.bindText(b.Lease.Owner)
	s.bindInt(before)
	changed, err := c.run(s)
	if err == nil && changed == 0 {
		return c.whyNot(b.Lease.Run)
	}
	if err == nil && b.Release {
		_, err = c.exec(releaseRun, b.Lease.Run, b.Lease.Owner, b.Lease.Epoch)
	}
	return err
}

// consecutive refuses records that leave a hole.
func consecutive(records []journal.Record, before int64) error {
	for i, r := range records {
		if want := before + int64(i) + 1; r.Seq != want {
			return fmt.Errorf("seq %d where %d is next: %w", r.Seq, want, journal.ErrStale)
		}
	}
	return nil
}

// insertRecords returns the pos of the first.
func (c *conn) insertRecords(rid int64, b *journal.Batch) (int64, error) {
	first, err := c.insertEvents(rid, b.Records)
	if err != nil {
		return 0, err
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

// emptyEndedInboxes takes out what an older version left when a run ended.
func (c *conn) emptyEndedInboxes() error {
	const left = `SELECT i.id FROM inbox i CROSS JOIN runs r ON r.rid = i.rid WHERE r.state = 'ended'`
	if _, some, err := c.queryInt(left + ` LIMIT 1`); err != nil || !some {
		return err
	}
	return c.erase(`DELETE FROM inbox WHERE id IN (` + left + `)`)
}

// insertEvents returns the pos of the first, which the others follow without a
// gap.
func (c *conn) insertEvents(rid int64, records []journal.Record) (first int64, err error) {
	for len(records) > 0 {
		rows := records[:min(len(records), maxRows)]
		records = records[len(rows):]
		s, err := c.prepare(insertEvents[len(rows)-1])
		if err != nil {
			return 0, err
		}
		s.bindInt(rid)
		for i := range rows {
			r := &rows[i]
			s.bindInt(r.Seq)
			s.bindText(r.Type)
			s.bindBlob(r.Body)
		}
		if _, err := c.run(s); err != nil {
			return 0, err
		}
		c.newest = c.db.lastRow()
		if first == 0 {
			first = c.newest - int64(len(rows)) + 1
		}
	}
	return first, nil
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
	row, ok, err := c.queryRow(`SELECT owner, expiry FROM runs WHERE id = ?1`, run)
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
