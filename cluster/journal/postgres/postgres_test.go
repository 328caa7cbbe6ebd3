package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

var (
	server   *pgtest.Server
	noServer error
	schemas  atomic.Int64
)

func TestMain(m *testing.M) {
	pgtest.Main(m, func(s *pgtest.Server, err error) { server, noServer = s, err })
}

// place returns the URL of a schema that no other test uses.
func place(t testing.TB) string {
	t.Helper()
	pgtest.Skip(t, noServer)
	return fmt.Sprintf("%s?schema=t%d", server.URL(), schemas.Add(1))
}

func open(t testing.TB, at string, o postgres.Options) *postgres.Store {
	t.Helper()
	o.Create = !o.ReadOnly
	s, err := postgres.Open(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStoreKeepsTheContract(t *testing.T) {
	journaltest.Run(t, func(t *testing.T, now func() time.Time) journal.Store {
		return open(t, place(t), postgres.Options{Now: now})
	})
}

// turns uses two stores on one schema in turn.
type turns struct {
	stores [2]journal.Store
	n      atomic.Int64
}

func (s *turns) next() journal.Store { return s.stores[s.n.Add(1)%2] }

func (s *turns) Create(ctx context.Context, r journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	return s.next().Create(ctx, r, b)
}
func (s *turns) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	return s.next().Acquire(ctx, run, owner, dead, ttl)
}
func (s *turns) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	return s.next().Renew(ctx, l, ttl)
}
func (s *turns) Release(ctx context.Context, l journal.Lease) error { return s.next().Release(ctx, l) }
func (s *turns) Append(ctx context.Context, b journal.Batch) (int64, error) {
	return s.next().Append(ctx, b)
}
func (s *turns) Run(ctx context.Context, id string) (journal.Run, error) {
	return s.next().Run(ctx, id)
}
func (s *turns) Find(ctx context.Context, prefix string) (journal.Run, error) {
	return s.next().Find(ctx, prefix)
}
func (s *turns) Runs(ctx context.Context, f journal.Filter) ([]journal.Run, error) {
	return s.next().Runs(ctx, f)
}
func (s *turns) Owners(ctx context.Context) ([]string, error) { return s.next().Owners(ctx) }
func (s *turns) Keep(ctx context.Context, run, name string, kept journal.Snapshot) error {
	return s.next().(journal.KeepsSnapshots).Keep(ctx, run, name, kept)
}
func (s *turns) Kept(ctx context.Context, run, name string) (journal.Snapshot, error) {
	return s.next().(journal.KeepsSnapshots).Kept(ctx, run, name)
}
func (s *turns) Count(ctx context.Context, counter string, n, most int64) (int64, bool, error) {
	return s.next().(journal.KeepsCounters).Count(ctx, counter, n, most)
}
func (s *turns) Register(ctx context.Context, d journal.Driver, ttl time.Duration) error {
	return s.next().(journal.KeepsDrivers).Register(ctx, d, ttl)
}
func (s *turns) Drivers(ctx context.Context) ([]journal.Driver, error) {
	return s.next().(journal.KeepsDrivers).Drivers(ctx)
}
func (s *turns) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	return s.next().Records(ctx, run, after, limit)
}
func (s *turns) Tail(ctx context.Context, after int64, limit int) ([]journal.Record, error) {
	return s.next().Tail(ctx, after, limit)
}
func (s *turns) Last(ctx context.Context) (int64, error) { return s.next().Last(ctx) }
func (s *turns) Tree(ctx context.Context, root string, after int64, limit int) ([]journal.Record, error) {
	return s.next().Tree(ctx, root, after, limit)
}
func (s *turns) Send(ctx context.Context, c journal.Command) (int64, error) {
	return s.next().Send(ctx, c)
}
func (s *turns) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	return s.next().Inbox(ctx, run)
}
func (s *turns) Watch(ctx context.Context) <-chan struct{} { return s.next().Watch(ctx) }
func (s *turns) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	return s.next().WatchInbox(ctx, run)
}
func (s *turns) Note(ctx context.Context, n journal.Note) (journal.Note, bool, error) {
	return s.next().Note(ctx, n)
}
func (s *turns) Amend(ctx context.Context, id int64, body []byte) error {
	return s.next().Amend(ctx, id, body)
}
func (s *turns) Notes(ctx context.Context, before int64, limit int) ([]journal.Note, error) {
	return s.next().Notes(ctx, before, limit)
}
func (s *turns) Files() []string { return s.next().Files() }
func (s *turns) Blob(ctx context.Context, digest string) ([]byte, error) {
	return s.next().Blob(ctx, digest)
}
func (s *turns) Delete(ctx context.Context, run string) error { return s.next().Delete(ctx, run) }
func (s *turns) Close() error                                 { return nil }

// Each of two stores on one schema sees what the other writes.
func TestTwoStoresOnOneSchemaKeepTheContract(t *testing.T) {
	for _, first := range []int64{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T, now func() time.Time) journal.Store {
				at := place(t)
				s := &turns{stores: [2]journal.Store{open(t, at, postgres.Options{Now: now}), open(t, at, postgres.Options{Now: now})}}
				s.n.Store(first)
				return s
			})
		})
	}
}
