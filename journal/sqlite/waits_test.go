package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// The row of an older version gets what its run waits for once, and only while it is the
// row of the same events.
func TestARowWithoutWaitsIsFilledOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	row := func(run string) journal.Run {
		t.Helper()
		r, err := s.Run(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	fill := func(r journal.Run, w *journal.Waits) *journal.Waits {
		t.Helper()
		if err := s.FillWaits(t.Context(), r, w); err != nil {
			t.Fatal(err)
		}
		return row(r.ID).Waits
	}
	d, other := journaltest.Start(t, s, "one"), journaltest.Start(t, s, "other")
	first := row("one")
	if first.Waits != nil {
		t.Fatalf("a run without waits has %+v", first.Waits)
	}
	d.Append(t, event.CycleStart{Cycle: 1, MaxCycles: 2})
	asks := &journal.Waits{Questions: []journal.Wait{{ID: "c", Seq: 2, Digest: "d"}}}
	if w := fill(first, asks); w != nil {
		t.Errorf("the row of an event that is not the last was filled: %+v", w)
	}
	if diff := cmp.Diff(asks, fill(row("one"), asks)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(asks, fill(row("one"), &journal.Waits{Message: true})); diff != "" {
		t.Errorf("filled twice (-first +now):\n%s", diff)
	}
	if w := fill(row("other"), &journal.Waits{}); w == nil || !w.Nothing() {
		t.Errorf("a run that waits for nothing has %+v", w)
	}

	// The next commit has the last word, with waits and without.
	for _, c := range []struct {
		d    *journaltest.Driver
		want *journal.Waits
	}{{d, &journal.Waits{Message: true}}, {d, &journal.Waits{}}, {other, nil}} {
		b := c.d.Batch(t, event.CycleStart{Cycle: 2, MaxCycles: 2})
		b.Status.Waits = c.want
		if err := c.d.Write(t, b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, row(c.d.Lease.Run).Waits); diff != "" {
			t.Errorf("after the next commit (-want +got):\n%s", diff)
		}
	}
	reader, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.FillWaits(t.Context(), row("other"), asks); !errors.Is(err, journal.ErrReadOnly) || row("other").Waits != nil {
		t.Errorf("of a reader: %v, %+v", err, row("other").Waits)
	}
}
