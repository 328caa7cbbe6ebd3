// Package memory implements a journal in memory, for tests and for programs that need
// no durability.
package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Store implements [journal.Store]. The zero value is not usable; see [New].
type Store struct {
	journal.Shared
	now    func() time.Time
	values bool

	mu       sync.RWMutex
	runs     map[string]*run
	order    []string
	log      []position
	pos      int64
	inboxSeq int64
	notes    []journal.Note
	noteSeq  int64
	blobs    map[string]*blob
	counters map[string]int64
	drivers  map[string]driver
	watchers journal.Watchers
}

type run struct {
	row journal.Run
	// base is the run that a fork shares the events up to row.ForkSeq with.
	base    *run
	epoch   int64
	records []journal.Record
	// encoded is the number of records with bytes; the head of the row is that of the
	// last of them.
	encoded int
	inbox   []journal.Command
}

// encode encodes the records that are still values. The store is locked.
func (r *run) encode() error {
	for ; r.encoded < len(r.records); r.encoded++ {
		rec := &r.records[r.encoded]
		rec.Event.Prev = r.row.Head
		body, err := event.Encode(rec.Event)
		if err != nil {
			return fmt.Errorf("memory: run %s: %w", r.row.ID, err)
		}
		rec.Body, rec.Event = body, nil
		r.row.Head = event.Hash(body)
	}
	return nil
}

// read returns the row with its head.
func (r *run) read() (journal.Run, error) {
	err := r.encode()
	return r.row, err
}

// position is the place of a record of the log: the i-th record of a run.
type position struct {
	pos int64
	run *run
	i   int
}

func (p position) record() (journal.Record, error) {
	err := p.run.encode()
	r := p.run.records[p.i]
	r.Root = p.run.row.Root
	return r, err
}

type blob struct {
	bytes []byte
	// runs are the runs that named it; it is deleted with the last.
	runs map[*run]bool
}

// New returns an empty store. now is the clock for leases; nil means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{
		now: now, runs: map[string]*run{}, blobs: map[string]*blob{},
	}
}

// NewValues returns an empty store that encodes events, and computes their hashes, when
// they are read. An event that is published when it is committed then has no Prev. It
// costs less if events are seldom read.
func NewValues(now func() time.Time) *Store {
	s := New(now)
	s.values = true
	return s
}

var (
	_ journal.Store       = (*Store)(nil)
	_ journal.KeepsValues = (*Store)(nil)
)

// KeepsValues reports whether batches may hold events in place of bytes.
func (s *Store) KeepsValues() bool { return s.values }

// Files returns none, because the runs are in memory.
func (s *Store) Files() []string { return nil }

// Create adds a run with its first records and its lease.
func (s *Store) Create(_ context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.runs[row.ID]; ok {
		return journal.Lease{}, 0, fmt.Errorf("memory: create run %s: %w", row.ID, journal.ErrExists)
	}
	if p := b.Parent; p.Run != "" {
		if above, ok := s.runs[p.Run]; !ok || above.epoch != p.Epoch || above.row.Owner != p.Owner {
			return journal.Lease{}, 0, fmt.Errorf("memory: create run %s: its parent %s: %w", row.ID, p.Run, journal.ErrStale)
		}
	}
	lease := b.Lease
	lease.Run, lease.Epoch = row.ID, 1
	row = row.Placed()
	row.Seq, row.Head, row.Owner, row.Expiry = row.ForkSeq, "", lease.Owner, lease.Expiry
	r := &run{row: row, epoch: 1}
	if row.ForkOf != "" {
		base, ok := s.runs[row.ForkOf]
		if !ok || base.row.Seq < row.ForkSeq {
			return journal.Lease{}, 0, fmt.Errorf("memory: create run %s: event %d of run %s: %w", row.ID, row.ForkSeq, row.ForkOf, journal.ErrNotFound)
		}
		shared, err := base.after(row.ForkSeq-1, 1)
		if err != nil {
			return journal.Lease{}, 0, err
		}
		for i := range shared {
			r.row.Head = event.Hash(shared[i].Body)
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

// Release releases a lease.
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
	if len(b.Records) > 0 && b.Records[0].Event == nil {
		if err := r.encode(); err != nil {
			return 0, err
		}
		r.encoded, r.row.Head = r.encoded+len(b.Records), b.Head
	}
	for _, rec := range b.Records {
		s.pos++
		rec.Pos, rec.Run = s.pos, r.row.ID
		s.log = append(s.log, position{pos: s.pos, run: r, i: len(r.records)})
		r.records = append(r.records, rec)
		r.row.Seq = rec.Seq
	}
	for _, b := range b.Blobs {
		if _, ok := s.blobs[b.Digest]; !ok {
			s.blobs[b.Digest] = &blob{bytes: b.Bytes, runs: map[*run]bool{}}
		}
		s.blobs[b.Digest].runs[r] = true
	}
	r.inbox = slices.DeleteFunc(r.inbox, func(c journal.Command) bool { return slices.Contains(b.Consumed, c.ID) })
	if b.Status.State == journal.Ended {
		r.inbox = nil
	}
	r.row.Progress, r.row.Updated = b.Status, b.Time
	if b.Release {
		r.row.Owner, r.row.Expiry = "", time.Time{}
	}
	s.watchers.Notify("")
	return first, nil
}

// Delete removes a run without a driver.
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
	s.log = slices.DeleteFunc(s.log, func(p position) bool { return p.run == r })
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
	maps.DeleteFunc(s.blobs, func(_ string, b *blob) bool {
		delete(b.runs, r)
		return len(b.runs) == 0
	})
	delete(s.runs, id)
	s.watchers.Notify("")
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
