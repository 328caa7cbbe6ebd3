// Package transfer copies runs from one journal into another, in whole trees.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Copied counts what a copy wrote. Present are the trees that were there before.
type Copied struct {
	Trees    int   `json:"trees"`
	Present  int   `json:"present"`
	Runs     int   `json:"runs"`
	Events   int64 `json:"events"`
	Blobs    int   `json:"blobs"`
	Commands int   `json:"commands"`
}

const (
	// page is how many events are read and written at once.
	page = 500
	// copying is the detail of a run that is being copied. It is paused, so that
	// nothing drives it.
	copying = "copying"
	// ttl is that of the leases under which runs are written, renewed with each page.
	ttl = time.Minute
)

// ErrDriven reports a run that a process drives.
var ErrDriven = errors.New("a process drives it; stop that first")

// ErrDiffers reports a run of the target that is not the one of the source, or went on
// less far.
var ErrDiffers = errors.New("the target has another run of that id, or an older state of it")

// Copy writes all runs of a journal into another, as their trees are: with their
// events, hashes, contents and commands. A tree that is there already is left alone,
// and one of which a cut copy left a part is copied again. Positions are new.
func Copy(ctx context.Context, from, to journal.Store, owner string) (Copied, error) {
	c := copier{from: from, to: to, owner: owner}
	rows, err := from.Runs(ctx, journal.Filter{})
	if err != nil {
		return c.done, err
	}
	slices.Reverse(rows) // a run that a fork stands on, and one that started another, is older
	var roots []string
	trees := map[string][]journal.Run{}
	for _, r := range rows {
		if r.Owner != "" && r.Expiry.After(time.Now()) {
			return c.done, fmt.Errorf("run %s: %w", r.ID, ErrDriven)
		}
		if trees[r.Root] == nil {
			roots = append(roots, r.Root)
		}
		trees[r.Root] = append(trees[r.Root], r)
	}
	for _, root := range roots {
		if err := c.tree(ctx, trees[root]); err != nil {
			return c.done, fmt.Errorf("copy the tree of run %s: %w", root, err)
		}
	}
	return c.done, nil
}

type copier struct {
	from, to journal.Store
	owner    string
	done     Copied
}

// tree copies a tree. Its runs get their states after all their events are there, the
// root last: until then a cut copy is recognised by it.
func (c *copier) tree(ctx context.Context, rows []journal.Run) error {
	present, err := c.present(ctx, rows)
	if err != nil {
		return err
	}
	if present {
		c.done.Present++
		return nil
	}
	leases := make([]journal.Lease, len(rows))
	for i, row := range rows {
		if leases[i], err = c.events(ctx, row); err != nil {
			return fmt.Errorf("run %s: %w", row.ID, err)
		}
	}
	for i, row := range slices.Backward(rows) {
		if err := c.settle(ctx, row, leases[i]); err != nil {
			return fmt.Errorf("run %s: %w", row.ID, err)
		}
		c.done.Runs++
	}
	c.done.Trees++
	return nil
}

// present reports whether the target has a tree. It takes away what a cut copy left,
// whose first run is still as it was made.
func (c *copier) present(ctx context.Context, rows []journal.Run) (bool, error) {
	var there []journal.Run
	for _, row := range rows {
		r, err := c.to.Run(ctx, row.ID)
		if err == nil {
			there = append(there, r)
		} else if !errors.Is(err, journal.ErrNotFound) {
			return false, err
		}
	}
	if len(there) == 0 {
		return false, nil
	}
	if there[0].ID != rows[0].ID || there[0].State != journal.Paused || there[0].Detail != copying {
		return true, same(rows, there)
	}
	for _, r := range slices.Backward(there) {
		if err := c.to.Delete(ctx, r.ID); err != nil {
			return false, fmt.Errorf("take away what a cut copy left: %w", err)
		}
	}
	return false, nil
}

// same returns an error if the target has another tree, or one that went on less far.
func same(rows, there []journal.Run) error {
	for i, row := range rows {
		if i == len(there) || there[i].ID != row.ID || !there[i].Created.Equal(row.Created) ||
			there[i].Seq < row.Seq || there[i].Seq == row.Seq && there[i].Head != row.Head {
			return fmt.Errorf("run %s: %w", row.ID, ErrDiffers)
		}
	}
	return nil
}

// events copies a run's own events with the contents that they name.
func (c *copier) events(ctx context.Context, row journal.Run) (l journal.Lease, err error) {
	l = journal.Lease{Run: row.ID, Owner: c.owner, Expiry: time.Now().Add(ttl)}
	made := row
	made.Owner, made.Expiry, made.Progress = "", time.Time{}, journal.Progress{}
	b := journal.Batch{Lease: l, Status: journal.Progress{State: journal.Paused, Detail: copying}, Time: row.Created}
	for first, after := true, row.ForkSeq; first || after < row.Seq; first = false {
		records, err := c.from.Records(ctx, row.ID, after, int(min(page, max(row.Seq-after, 1))))
		if err != nil {
			return l, err
		}
		if len(records) == 0 && after < row.Seq {
			return l, &journal.CorruptError{Run: row.ID, Seq: after + 1, What: "the event is missing"}
		}
		b.Records, b.Head = records, row.Head
		for _, r := range records {
			after, b.Head = r.Seq, event.Hash(r.Body)
		}
		if b.Blobs, err = c.contents(ctx, records); err != nil {
			return l, err
		}
		if first {
			l, _, err = c.to.Create(ctx, made, b)
		} else if l, err = c.to.Renew(ctx, l, ttl); err == nil {
			b.Lease = l
			_, err = c.to.Append(ctx, b)
		}
		if err != nil {
			return l, err
		}
		b.Lease = l
		c.done.Events += int64(len(records))
		c.done.Blobs += len(b.Blobs)
	}
	return l, nil
}

// contents reads what events refer to.
func (c *copier) contents(ctx context.Context, records []journal.Record) (blobs []journal.Blob, err error) {
	named := map[string]bool{}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", r.Seq, err)
		}
		for _, ref := range event.Blobs(e.Data) {
			if named[ref.Digest] {
				continue
			}
			named[ref.Digest] = true
			content, err := c.from.Blob(ctx, ref.Digest)
			if err != nil {
				return nil, fmt.Errorf("event %d: %w", r.Seq, err)
			}
			blobs = append(blobs, journal.Blob{Digest: ref.Digest, Bytes: content})
		}
	}
	return blobs, nil
}

// settle gives a run its commands and its state, and lets go of it.
func (c *copier) settle(ctx context.Context, row journal.Run, l journal.Lease) error {
	commands, err := c.from.Inbox(ctx, row.ID)
	if err != nil {
		return err
	}
	if row.State != journal.Ended {
		for _, command := range commands {
			if _, err := c.to.Send(ctx, command); err != nil {
				return err
			}
			c.done.Commands++
		}
	}
	if l, err = c.to.Renew(ctx, l, ttl); err != nil {
		return err
	}
	_, err = c.to.Append(ctx, journal.Batch{Lease: l, Head: row.Head, Status: row.Progress, Time: row.Updated, Release: true})
	return err
}
