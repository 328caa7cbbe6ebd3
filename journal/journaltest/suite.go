// Package journaltest tests implementations of [journal.Store] against a common suite,
// and provides a [Driver] that writes runs for tests.
package journaltest

import (
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Open returns an empty store for one test that uses now as the clock for leases. It
// registers the store's Close with t.Cleanup.
type Open func(t *testing.T, now func() time.Time) journal.Store

// Run checks a store against the contract of [journal.Store].
func Run(t *testing.T, open Open) {
	for _, group := range []struct {
		name  string
		tests []contract
	}{
		{"append", appendContract()},
		{"lease", leaseContract()},
		{"inbox", inboxContract()},
		{"read", readContract()},
		{"note", noteContract()},
		{"delete", deleteContract()},
		{"fork", forkContract()},
		{"snapshot", snapshotContract()},
		{"counter", counterContract()},
		{"drivers", driversContract()},
		{"concurrency", concurrencyContract()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) {
					clock := &clock{now: Epoch()}
					c.check(t, open(t, clock.Now), clock)
				})
			}
		})
	}
}

// contract is one requirement for a store.
type contract struct {
	name  string
	check func(t *testing.T, s journal.Store, c *clock)
}

// optional returns a store as an interface that stores may implement, and skips the test of
// a store that does not. things is what such a store keeps.
func optional[T any](t *testing.T, s journal.Store, things string) T {
	t.Helper()
	keeps, may := s.(T)
	if !may {
		t.Skip("the store keeps no " + things)
	}
	return keeps
}

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// said returns an event with the given text.
func said(text string) event.Data { return event.InputReceived{Text: text, By: "someone"} }

// all reads a run's records in pages of the given size.
func all(t testing.TB, s journal.Store, run string, page int) []journal.Record {
	t.Helper()
	var out []journal.Record
	for after := int64(0); ; {
		records, err := s.Records(t.Context(), run, after, page)
		if err != nil {
			t.Fatalf("records of %s after %d: %v", run, after, err)
		}
		out = append(out, records...)
		if len(records) < page || page == 0 {
			return out
		}
		after = records[len(records)-1].Seq
	}
}

// snapshot is everything that a reader can see of a run.
type snapshot struct {
	Row     journal.Run
	Records []journal.Record
	Inbox   []journal.Command
}

func look(t testing.TB, s journal.Store, run string) snapshot {
	t.Helper()
	row, err := s.Run(t.Context(), run)
	if err != nil {
		t.Fatalf("run %s: %v", run, err)
	}
	inbox, err := s.Inbox(t.Context(), run)
	if err != nil {
		t.Fatalf("inbox of %s: %v", run, err)
	}
	return snapshot{Row: row, Records: all(t, s, run, 0), Inbox: inbox}
}
