// Package memory is a journal in the process's memory: for tests, and for
// programs that embed the loop and need no durability.
package memory

import (
	"cmp"
	"context"
	"fmt"
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
	inboxSeq int64
	blobs    map[string][]byte
	watchers map[chan struct{}]bool // whether only commands matter
}

type run struct {
	row     journal.Run
	epoch   int64
	records []journal.Record
	inbox   []journal.Command
}

// New returns an empty store. now is the clock for leases; nil means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{
		now: now, runs: map[string]*run{}, blobs: map[string][]byte{},
		watchers: map[chan struct{}]bool{},
	}
}

var _ journal.Store = (*Store)(nil)

// Create adds a run with its first records and its lease.
func (s *Store) Create(_ context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.runs[row.ID]; ok {
		return journal.Lease{}, 0, fmt.Errorf("memory: run %s exists", row.ID)
	}
	r := &run{row: row, epoch: 1}
	s.runs[row.ID] = r
	s.order = append(s.order, row.ID)
	lease := b.Lease
	lease.Epoch = 1
	r.row.Owner, r.row.Expiry = lease.Owner, lease.Expiry
	b.Lease = lease
	pos, err := s.append(r, b)
	return lease, pos, err
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
	if r.row.Owner != "" && r.row.Owner != owner && r.row.Owner != dead && now.Before(r.row.Expiry) {
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
	r, err := s.held(b.Lease)
	if err != nil {
		return 0, err
	}
	if r.row.State == journal.Ended {
		return 0, fmt.Errorf("memory: append to %s: %w", b.Lease.Run, journal.ErrEnded)
	}
	return s.append(r, b)
}

func (s *Store) append(r *run, b journal.Batch) (int64, error) {
	first := int64(len(s.log)) + 1
	for i, rec := range b.Records {
		if want := r.row.Seq + int64(i) + 1; rec.Seq != want {
			return 0, fmt.Errorf("memory: append seq %d to %s where %d is next: %w", rec.Seq, r.row.ID, want, journal.ErrStale)
		}
	}
	for i, rec := range b.Records {
		rec.Pos = first + int64(i)
		rec.Run = r.row.ID
		s.log = append(s.log, rec)
		r.records = append(r.records, rec)
		r.row.Seq, r.row.Head = rec.Seq, b.Head
	}
	for _, blob := range b.Blobs {
		s.blobs[blob.Digest] = blob.Bytes
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
		if !ok || f.Parent != "" && r.row.Parent != f.Parent ||
			len(f.States) > 0 && !slices.Contains(f.States, r.row.State) {
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
	return page(r.records, after, limit), nil
}

// Tail returns records of any run after a pos.
func (s *Store) Tail(_ context.Context, after int64, limit int) ([]journal.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(page(s.log, after, limit)), func(r journal.Record) bool { return r.Body == nil }), nil
}

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
	return b, nil
}

// Delete removes an ended run.
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
	for _, rec := range r.records {
		s.log[rec.Pos-1].Body = nil
	}
	delete(s.runs, id)
	s.notify(false)
	return nil
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
