// Package memory is a journal in the process's memory: for tests, and for
// programs that embed the loop and need no durability.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Store implements [journal.Store]. The zero value is not usable; see [New].
type Store struct {
	now func() time.Time

	mu       sync.RWMutex
	runs     map[string]*run
	order    []string
	log      []journal.Record
	pos      int64
	inboxSeq int64
	blobs    map[string]*blob
	watchers map[chan struct{}]bool // whether only commands matter
}

type run struct {
	row journal.Run
	// base is the run that a fork shares the events up to row.ForkSeq with.
	base    *run
	epoch   int64
	records []journal.Record
	inbox   []journal.Command
}

type blob struct {
	bytes []byte
	// runs are those that named it; it goes with the last.
	runs map[*run]bool
}

// New returns an empty store. now is the clock for leases; nil means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{
		now: now, runs: map[string]*run{}, blobs: map[string]*blob{},
		watchers: map[chan struct{}]bool{},
	}
}

var _ journal.Store = (*Store)(nil)

// Create adds a run with its first records and its lease.
func (s *Store) Create(_ context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.runs[row.ID]; ok {
		return journal.Lease{}, 0, fmt.Errorf("memory: create run %s: %w", row.ID, journal.ErrExists)
	}
	lease := b.Lease
	lease.Run, lease.Epoch = row.ID, 1
	row.Seq, row.Head, row.Owner, row.Expiry = row.ForkSeq, "", lease.Owner, lease.Expiry
	r := &run{row: row, epoch: 1}
	if row.ForkOf != "" {
		base, ok := s.runs[row.ForkOf]
		if !ok || base.row.Seq < row.ForkSeq {
			return journal.Lease{}, 0, fmt.Errorf("memory: create run %s: event %d of run %s: %w", row.ID, row.ForkSeq, row.ForkOf, journal.ErrNotFound)
		}
		r.base = base
	}
	pos, err := s.append(r, b)
	if err != nil {
		return journal.Lease{}, 0, err
	}
	s.runs[row.ID] = r
	s.order = append(s.order, row.ID)
	return lease, pos, nil
}

// Acquire takes a free or expired lease.
func (s *Store) Acquire(_ context.Context, id, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return journal.Lease{}, err
	}
	now := s.now()
	if r.row.Owner != "" && r.row.Owner != dead && now.Before(r.row.Expiry) {
		return journal.Lease{}, &journal.HeldError{Run: id, Owner: r.row.Owner, Expiry: r.row.Expiry}
	}
	r.epoch++
	r.row.Owner, r.row.Expiry = owner, now.Add(ttl)
	return journal.Lease{Run: id, Owner: owner, Epoch: r.epoch, Expiry: r.row.Expiry}, nil
}

// Renew extends a lease.
func (s *Store) Renew(_ context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.held(l)
	if err != nil {
		return l, err
	}
	r.row.Expiry = s.now().Add(ttl)
	l.Expiry = r.row.Expiry
	return l, nil
}

// Release gives a lease up.
func (s *Store) Release(_ context.Context, l journal.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, err := s.held(l); err == nil {
		r.row.Owner, r.row.Expiry = "", time.Time{}
	}
	return nil
}

// Append writes a batch.
func (s *Store) Append(_ context.Context, b journal.Batch) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(b.Lease.Run)
	if err != nil {
		return 0, err
	}
	if r.row.State == journal.Ended {
		return 0, fmt.Errorf("memory: append to %s: %w", b.Lease.Run, journal.ErrEnded)
	}
	if _, err := s.held(b.Lease); err != nil {
		return 0, err
	}
	return s.append(r, b)
}

func (s *Store) append(r *run, b journal.Batch) (int64, error) {
	first := s.pos + 1
	for i, rec := range b.Records {
		if want := r.row.Seq + int64(i) + 1; rec.Seq != want {
			return 0, fmt.Errorf("memory: append seq %d to %s where %d is next: %w", rec.Seq, r.row.ID, want, journal.ErrStale)
		}
	}
	for _, rec := range b.Records {
		s.pos++
		rec.Pos, rec.Run = s.pos, r.row.ID
		s.log = append(s.log, rec)
		r.records = append(r.records, rec)
		r.row.Seq, r.row.Head = rec.Seq, b.Head
	}
	for _, b := range b.Blobs {
		if _, ok := s.blobs[b.Digest]; !ok {
			s.blobs[b.Digest] = &blob{bytes: b.Bytes, runs: map[*run]bool{}}
		}
		s.blobs[b.Digest].runs[r] = true
	}
	r.inbox = slices.DeleteFunc(r.inbox, func(c journal.Command) bool { return slices.Contains(b.Consumed, c.ID) })
	r.row.Status, r.row.Updated = b.Status, b.Time
	if b.Release {
		r.row.Owner, r.row.Expiry = "", time.Time{}
	}
	s.notify(false)
	return first, nil
}

// Run returns a run's row.
func (s *Store) Run(_ context.Context, id string) (journal.Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.find(id)
	if err != nil {
		return journal.Run{}, err
	}
	return r.row, nil
}

// Find returns the run whose id begins with prefix.
func (s *Store) Find(_ context.Context, prefix string) (journal.Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r, ok := s.runs[prefix]; ok {
		return r.row, nil
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
		return s.runs[hits[0]].row, nil
	}
	slices.Sort(hits)
	return journal.Run{}, fmt.Errorf("memory: %q fits %s: %w", prefix, strings.Join(hits, ", "), journal.ErrAmbiguous)
}

// Runs lists runs, newest first.
func (s *Store) Runs(_ context.Context, f journal.Filter) ([]journal.Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var rows []journal.Run
	skip := f.Before != ""
	for _, id := range slices.Backward(s.order) {
		r, ok := s.runs[id]
		if skip {
			skip = id != f.Before
			continue
		}
		if !ok || f.Parent != "" && r.row.Parent != f.Parent || f.ForkOf != "" && r.row.ForkOf != f.ForkOf ||
			len(f.States) > 0 && !slices.Contains(f.States, r.row.State) ||
			!f.UpdatedBefore.IsZero() && !r.row.Updated.Before(f.UpdatedBefore) {
			continue
		}
		rows = append(rows, r.row)
		if f.Limit > 0 && len(rows) == f.Limit {
			break
		}
	}
	return rows, nil
}

// Records returns records of a run after a seq.
func (s *Store) Records(_ context.Context, id string, after int64, limit int) ([]journal.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return r.after(after, limit), nil
}

// after returns records of a run, those that it shares first.
func (r *run) after(after int64, limit int) []journal.Record {
	shared := r.row.ForkSeq - max(after, 0)
	if r.base == nil || shared <= 0 {
		return page(r.records, after-r.row.ForkSeq, limit)
	}
	want := shared
	if limit > 0 {
		want = min(want, int64(limit))
	}
	records := slices.Clone(r.base.after(after, int(want)))
	if limit > 0 {
		if limit -= len(records); limit == 0 {
			return records
		}
	}
	return append(records, page(r.records, 0, limit)...)
}

// Tail returns records of any run after a pos.
func (s *Store) Tail(_ context.Context, after int64, limit int) ([]journal.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	from, _ := slices.BinarySearchFunc(s.log, after+1, func(r journal.Record, pos int64) int { return cmp.Compare(r.Pos, pos) })
	return slices.Clone(page(s.log, int64(from), limit)), nil
}

// page returns up to limit records behind the first after ones.
func page(records []journal.Record, after int64, limit int) []journal.Record {
	from := min(max(int(after), 0), len(records))
	to := len(records)
	if limit > 0 {
		to = min(to, from+limit)
	}
	return records[from:to:to]
}

// Send puts a command into a run's inbox.
func (s *Store) Send(_ context.Context, c journal.Command) (int64, error) {
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
	s.notify(true)
	return c.ID, nil
}

// Inbox reads what is not consumed.
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
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch(ctx, false) }

// WatchInbox returns a channel that receives after a command was sent.
func (s *Store) WatchInbox(ctx context.Context) <-chan struct{} { return s.watch(ctx, true) }

func (s *Store) watch(ctx context.Context, inboxOnly bool) <-chan struct{} {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[ch] = inboxOnly
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		delete(s.watchers, ch)
		s.mu.Unlock()
	})
	return ch
}

func (s *Store) notify(inbox bool) {
	for ch, inboxOnly := range s.watchers {
		if inboxOnly && !inbox {
			continue
		}
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Blob returns stored content.
func (s *Store) Blob(_ context.Context, digest string) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("memory: blob %s: %w", digest, journal.ErrNotFound)
	}
	return b.bytes, nil
}

// Delete removes a run that nobody drives.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(id)
	if err != nil {
		return err
	}
	if r.row.Owner != "" && s.now().Before(r.row.Expiry) {
		return &journal.HeldError{Run: id, Owner: r.row.Owner, Expiry: r.row.Expiry}
	}
	if forks := s.forksOf(r); len(forks) > 0 {
		return &journal.ForkedError{Run: id, Forks: forks}
	}
	s.log = slices.DeleteFunc(s.log, func(rec journal.Record) bool { return rec.Run == id })
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
	maps.DeleteFunc(s.blobs, func(_ string, b *blob) bool {
		delete(b.runs, r)
		return len(b.runs) == 0
	})
	delete(s.runs, id)
	s.notify(false)
	return nil
}

func (s *Store) forksOf(base *run) []string {
	var forks []string
	for id, r := range s.runs {
		if r.base == base {
			forks = append(forks, id)
		}
	}
	slices.Sort(forks)
	return forks
}

// Close does nothing.
func (s *Store) Close() error { return nil }

func (s *Store) find(id string) (*run, error) {
	r, ok := s.runs[id]
	if !ok {
		return nil, fmt.Errorf("memory: run %s: %w", id, journal.ErrNotFound)
	}
	return r, nil
}

func (s *Store) held(l journal.Lease) (*run, error) {
	r, err := s.find(l.Run)
	if err != nil {
		return nil, err
	}
	if r.epoch != l.Epoch || r.row.Owner != l.Owner {
		return nil, fmt.Errorf("memory: run %s: %w", l.Run, journal.ErrStale)
	}
	return r, nil
}
