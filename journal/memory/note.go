package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/journal"
)

// Note adds a note, unless there is one with its key.
func (s *Store) Note(_ context.Context, n journal.Note) (journal.Note, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = slices.DeleteFunc(s.notes, func(old journal.Note) bool { return !old.Expires.IsZero() && old.Expires.Before(n.At) })
	if i := slices.IndexFunc(s.notes, func(old journal.Note) bool { return n.Key != "" && old.Key == n.Key }); i >= 0 {
		return s.notes[i], false, nil
	}
	s.noteSeq++
	n.ID, n.Body = s.noteSeq, bytes.Clone(n.Body)
	s.notes = append(s.notes, n)
	return n, true, nil
}

// Amend replaces a note's body, or deletes the note if body is nil.
func (s *Store) Amend(_ context.Context, id int64, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.notes, func(n journal.Note) bool { return n.ID == id })
	switch {
	case i < 0:
		return fmt.Errorf("memory: note %d: %w", id, journal.ErrNotFound)
	case body == nil:
		s.notes = slices.Delete(s.notes, i, i+1)
	default:
		s.notes[i].Body = bytes.Clone(body)
	}
	return nil
}

// Notes returns the notes without a key, the newest first.
func (s *Store) Notes(_ context.Context, before int64, limit int) ([]journal.Note, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []journal.Note
	for _, n := range slices.Backward(s.notes) {
		if n.Key == "" && (before == 0 || n.ID < before) && len(out) < limit {
			out = append(out, n)
		}
	}
	return out, nil
}
