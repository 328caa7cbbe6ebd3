package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/journal"
)

// Run returns a run's row.
func (s *Store) Run(_ context.Context, id string) (journal.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return journal.Run{}, err
	}
	return r.read()
}

// Find returns the run whose id begins with prefix.
func (s *Store) Find(_ context.Context, prefix string) (journal.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.runs[prefix]; ok {
		return r.read()
	}
	var hits []string
	for id := range s.runs {
		if prefix != "" && strings.HasPrefix(id, prefix) {
			hits = append(hits, id)
		}
	}
	switch len(hits) {
	case 0:
		return journal.Run{}, fmt.Errorf("memory: run %q: %w", prefix, journal.ErrNotFound)
	case 1:
		r := s.runs[hits[0]]
		return r.read()
	}
	slices.Sort(hits)
	return journal.Run{}, fmt.Errorf("memory: %q fits %s: %w", prefix, strings.Join(hits, ", "), journal.ErrAmbiguous)
}

// Runs lists runs, newest first.
func (s *Store) Runs(_ context.Context, f journal.Filter) ([]journal.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []journal.Run
	now := s.now()
	skip := f.Before != ""
	for _, id := range slices.Backward(s.order) {
		r, ok := s.runs[id]
		if skip {
			skip = id != f.Before
			continue
		}
		if !ok || f.Parent != "" && r.row.Parent != f.Parent || f.ForkOf != "" && r.row.ForkOf != f.ForkOf ||
			f.Root != "" && r.row.Root != f.Root || f.Roots && r.row.Parent != "" ||
			f.Kind != "" && r.row.Kind != f.Kind || f.Name != "" && r.row.Name != f.Name || f.Detail != "" && r.row.Detail != f.Detail ||
			f.Owner != "" && r.row.Owner != f.Owner || f.Free && r.row.Owner != "" && r.row.Expiry.After(now) ||
			len(f.States) > 0 && !slices.Contains(f.States, r.row.State) ||
			!f.UpdatedBefore.IsZero() && !r.row.Updated.Before(f.UpdatedBefore) {
			continue
		}
		row, err := r.read()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if f.Limit > 0 && len(rows) == f.Limit {
			break
		}
	}
	return rows, nil
}

// Owners returns the holders of leases.
func (s *Store) Owners(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := map[string]bool{}
	for _, r := range s.runs {
		owners[r.row.Owner] = true
	}
	delete(owners, "")
	return slices.Sorted(maps.Keys(owners)), nil
}

// Records returns records of a run after a seq.
func (s *Store) Records(_ context.Context, id string, after int64, limit int) ([]journal.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return r.after(after, limit)
}

// after returns records of a run, shared ones first.
func (r *run) after(after int64, limit int) ([]journal.Record, error) {
	if err := r.encode(); err != nil {
		return nil, err
	}
	shared := r.row.ForkSeq - max(after, 0)
	if r.base == nil || shared <= 0 {
		return page(r.records, after-r.row.ForkSeq, limit), nil
	}
	want := shared
	if limit > 0 {
		want = min(want, int64(limit))
	}
	records, err := r.base.after(after, int(want))
	if err != nil {
		return nil, err
	}
	records = slices.Clone(records)
	if limit > 0 {
		if limit -= len(records); limit == 0 {
			return records, nil
		}
	}
	return append(records, page(r.records, 0, limit)...), nil
}

// Tail returns records of any run after a pos.
func (s *Store) Tail(_ context.Context, after int64, limit int) ([]journal.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, _ := slices.BinarySearchFunc(s.log, after+1, func(p position, pos int64) int { return cmp.Compare(p.pos, pos) })
	places := page(s.log, int64(from), limit)
	records := make([]journal.Record, len(places))
	for i, p := range places {
		r, err := p.record()
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// Last returns the newest pos.
func (s *Store) Last(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pos, nil
}

// Tree returns records of a root and all its descendants after a pos.
func (s *Store) Tree(_ context.Context, root string, after int64, limit int) ([]journal.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(root); err != nil {
		return nil, err
	}
	from, _ := slices.BinarySearchFunc(s.log, after+1, func(p position, pos int64) int { return cmp.Compare(p.pos, pos) })
	var records []journal.Record
	for _, p := range s.log[from:] {
		if limit > 0 && len(records) == limit {
			break
		}
		if p.run.row.Root != root {
			continue
		}
		r, err := p.record()
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// page returns up to limit elements after the first after ones.
func page[T any](list []T, after int64, limit int) []T {
	from := min(max(int(after), 0), len(list))
	to := len(list)
	if limit > 0 {
		to = min(to, from+limit)
	}
	return list[from:to:to]
}

// Blob returns stored content.
func (s *Store) Blob(_ context.Context, digest string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("memory: blob %s: %w", digest, journal.ErrNotFound)
	}
	return b.bytes, nil
}
