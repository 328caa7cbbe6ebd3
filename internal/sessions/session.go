// Package sessions finds and continues conversations in a journal.
//
// A session is a chain of runs: the first message starts a run, and each later one
// starts a run that continues the one before, or reaches that run if it has not ended.
// The id of a session is that of its first run. A session has no state besides its
// runs, so another process, or another surface, can continue it.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// Link is one run of a session.
type Link struct {
	journal.Run
	Started event.RunStarted
}

// Summary describes a session for a list.
type Summary struct {
	ID string
	// Dir is the workspace of the newest run, and Title the first message.
	Dir, Title string
	// Newest is the run that the next message continues.
	Newest journal.Run
	// Runs is the number of runs.
	Runs int
}

// page is how many rows are read at a time.
const page = 100

// Chain returns the runs of a session, the oldest first. The error wraps
// [journal.ErrNotFound] if no session has the id. It reads the rows of the runs that
// are newer than the session.
func Chain(ctx context.Context, store journal.Store, id string) ([]Link, error) {
	first, err := store.Run(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("sessions: session %s: %w", id, err)
	}
	var chain []Link
	err = newestFirst(ctx, store, func(l Link) bool {
		if of(l) == id {
			chain = append(chain, l)
		}
		return l.ID != first.ID
	})
	if err != nil {
		return nil, fmt.Errorf("sessions: session %s: %w", id, err)
	}
	if len(chain) == 0 || chain[len(chain)-1].ID != id {
		return nil, fmt.Errorf("sessions: session %s: run %s is not the first of a session: %w", id, id, journal.ErrNotFound)
	}
	slices.Reverse(chain)
	return chain, nil
}

// List returns at most limit sessions whose newest run works in a directory, or all for
// "", the most recently continued one first.
func List(ctx context.Context, store journal.Store, dir string, limit int) ([]Summary, error) {
	var all []*Summary
	byID := map[string]*Summary{}
	err := newestFirst(ctx, store, func(l Link) bool {
		if l.Started.Name == commandRun {
			return true
		}
		id := of(l)
		s := byID[id]
		if s == nil {
			s = &Summary{ID: id, Dir: l.Started.Workspace, Newest: l.Run}
			byID[id] = s
			if dir == "" || s.Dir == dir {
				all = append(all, s)
			}
		}
		s.Runs++
		if l.Started.Input != nil {
			s.Title = l.Started.Input.Parts.Text()
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	list := make([]Summary, 0, min(limit, len(all)))
	for _, s := range all[:min(limit, len(all))] {
		list = append(list, *s)
	}
	return list, nil
}

// Of returns the session that a run belongs to.
func Of(ctx context.Context, store journal.Store, run string) (string, error) {
	started, err := drive.At[event.RunStarted](ctx, store, run, 0)
	if err != nil {
		return "", fmt.Errorf("sessions: %w", err)
	}
	return of(Link{journal.Run{ID: run}, started}), nil
}

// of returns the session of a run.
func of(l Link) string {
	if from := l.Started.From; from != nil && from.Root != "" {
		return from.Root
	}
	return l.ID
}

// newestFirst visits the root runs, the newest first, until visit returns false. It
// skips runs that are removed during the scan.
func newestFirst(ctx context.Context, store journal.Store, visit func(Link) bool) error {
	for before := ""; ; {
		rows, err := store.Runs(ctx, journal.Filter{Roots: true, Before: before, Limit: page})
		if err != nil {
			return err
		}
		for _, r := range rows {
			started, err := drive.At[event.RunStarted](ctx, store, r.ID, 0)
			if errors.Is(err, journal.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if !visit(Link{r, started}) {
				return nil
			}
		}
		if len(rows) < page {
			return nil
		}
		before = rows[len(rows)-1].ID
	}
}
