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

// Copied counts what a copy wrote. Present counts the trees that were already there.
type Copied struct {
	Trees    int   `json:"trees"`
	Present  int   `json:"present"`
	Runs     int   `json:"runs"`
	Events   int64 `json:"events"`
	Blobs    int   `json:"blobs"`
	Commands int   `json:"commands"`
}

const (
	// page is the number of events that are read and written at once.
	page = 500
	// copying is the detail of a run that is being copied. The run is paused, so that
	// no process drives it.
	copying = "copying"
	// ttl is the duration of the leases for writing runs, which are renewed with each
	// page.
	ttl = time.Minute
)

// ErrDriven reports a run that a process drives.
var ErrDriven = errors.New("a process drives it; stop that first")

// ErrDiffers reports a run of the target that differs from the one of the source, or
// has fewer events.
var ErrDiffers = errors.New("the target has another run of that id, or an older state of it")

// Copy copies all runs of a journal into another, tree by tree, with their events,
// hashes, contents and commands. It skips a tree that the target already has, and
// copies a tree again if an interrupted copy left only a part of it. The copied events
// get new positions.
func Copy(ctx context.Context, from, to journal.Store, owner string) (Copied, error) {
	c := copier{from: from, to: to, owner: owner}
	rows, err := from.Runs(ctx, journal.Filter{})
	if err != nil {
		return c.done, err
	}
	slices.Reverse(rows) // parents and the bases of forks are older
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

// tree copies a tree. It sets the states of the runs after all events are copied, and
// that of the root last, because the root's state shows whether a copy was interrupted.
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

// present reports whether the target has a tree. It deletes the remains of an
// interrupted copy, which are recognised by the initial state of the root.
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

// same returns an error if the target has another tree, or fewer events of it.
func same(rows, there []journal.Run) error {
	for i, row := range rows {
		if i == len(there) || there[i].ID != row.ID || !there[i].Created.Equal(row.Created) ||
			there[i].Seq < row.Seq || there[i].Seq == row.Seq && there[i].Head != row.Head {
			return fmt.Errorf("run %s: %w", row.ID, ErrDiffers)
		}
	}
	return nil
}

// events copies a run's own events with the contents that they refer to.
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

// contents reads the contents that events refer to.
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

// settle copies a run's commands, sets its state and releases it.
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
