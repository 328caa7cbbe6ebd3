package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/journal"
)

// Send puts a command into a run's inbox.
func (s *Store) Send(ctx context.Context, c journal.Command) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("memory: send %s to %s: %w", c.Kind, c.Run, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(c.Run)
	if err != nil {
		return 0, err
	}
	if r.row.State == journal.Ended {
		return 0, fmt.Errorf("memory: send %s to %s: %w", c.Kind, c.Run, journal.ErrEnded)
	}
	s.inboxSeq++
	c.ID = s.inboxSeq
	r.inbox = append(r.inbox, c)
	s.watchers.Notify("", c.Run)
	return c.ID, nil
}

// Inbox returns the commands that are not consumed.
func (s *Store) Inbox(_ context.Context, id string) ([]journal.Command, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if id == "" {
		var all []journal.Command
		for _, r := range s.runs {
			all = append(all, r.inbox...)
		}
		slices.SortFunc(all, func(a, b journal.Command) int { return cmp.Compare(a.ID, b.ID) })
		return all, nil
	}
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return slices.Clone(r.inbox), nil
}

// Watch returns a channel that receives after each commit.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watchers.Add(ctx, "") }

// WatchInbox returns a channel that receives after a command was sent to a run.
func (s *Store) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	return s.watchers.Add(ctx, run)
}
