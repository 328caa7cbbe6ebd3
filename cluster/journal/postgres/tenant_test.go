package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Eight workers take and release the runs of a tenant that may run three. It never runs
// more, and a run that was refused says why.
func TestAcquireCountsTheRunsOfATenant(t *testing.T) {
	const most, n = 3, 24
	s := openNew(t)
	for i := range n {
		id := fmt.Sprintf("run%d", i)
		addRun(t, s, id)
		if err := s.Assign(t.Context(), id, "team", most); err != nil {
			t.Fatal(err)
		}
	}
	addRun(t, s, "other")
	var mu sync.Mutex
	now, peak, refused := 0, 0, 0
	add := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		peak = max(peak, now)
	}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; i < n; {
				l, err := s.Acquire(t.Context(), fmt.Sprintf("run%d", i), fmt.Sprintf("worker%d", w), "", time.Minute)
				if errors.Is(err, journal.ErrTenantFull) {
					mu.Lock()
					refused++
					mu.Unlock()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				add(1)
				if _, err := s.Acquire(t.Context(), "other", "another", "another", time.Minute); err != nil {
					t.Error(err)
				}
				add(-1)
				if err := s.Release(t.Context(), l); err != nil {
					t.Error(err)
				}
				i += 8
			}
		})
	}
	workers.Wait()
	if peak > most || refused == 0 {
		t.Errorf("%d runs at once, %d refusals; want at most %d, and some", peak, refused, most)
	}
	t.Logf("%d runs, at most %d at once, %d refusals", n, peak, refused)
}

func TestLoadCountsRunsByTenant(t *testing.T) {
	s := openNew(t)
	for i, tenant := range []string{"a", "a", "b", ""} {
		id := fmt.Sprintf("run%d", i)
		addRun(t, s, id)
		if tenant != "" {
			if err := s.Assign(t.Context(), id, tenant, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		load, err := s.Load(t.Context())
		if err != nil || len(load) != 3 || load[0].Tenant != "" || load[1].Runs != 2 || load[2].Runs != 1 || load[1].State != journal.Queued || load[1].Oldest.IsZero() {
			t.Fatalf("load %+v, %v", load, err)
		}
	}
	if _, err := s.Acquire(t.Context(), "run0", "w", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "run1", "w", "", time.Minute); !errors.Is(err, journal.ErrTenantFull) {
		t.Fatalf("the second run of a tenant that may run one: %v", err)
	}
	if row, err := s.Run(t.Context(), "run1"); err != nil || row.Detail != "max_running 1 of a" {
		t.Errorf("the run that waits says %q, %v", row.Detail, err)
	}
}

func openNew(t *testing.T) *postgres.Store { return open(t, place(t), postgres.Options{}) }

// addRun creates a run that is queued.
func addRun(t *testing.T, s journal.Store, id string) {
	t.Helper()
	now := time.Now()
	queued := journal.Progress{State: journal.Queued}
	_, _, err := s.Create(t.Context(), journal.Run{ID: id, Kind: "agent", Created: now, Updated: now, Progress: queued}, journal.Batch{
		Lease: journal.Lease{Run: id, Owner: "api", Expiry: now.Add(time.Minute)}, Records: []journal.Record{{Run: id, Seq: 1, Type: "run.started", Body: []byte("{}")}},
		Head: event.Hash([]byte("{}")), Status: queued, Time: now, Release: true,
	})
	if err != nil {
		t.Fatal(err)
	}
}
