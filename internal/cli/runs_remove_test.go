package cli

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// lateChild is a journal in which a run starts another one just before it is
// deleted.
type lateChild struct {
	journal.Store
	t      *testing.T
	parent string
}

func (s lateChild) Delete(ctx context.Context, run string) error {
	if run == s.parent {
		leave(s.t, s.Store, "late", run)
	}
	return s.Store.Delete(ctx, run)
}

// leave writes a run that no process drives any more.
func leave(t *testing.T, s journal.Store, id, parent string) {
	t.Helper()
	_, _, err := s.Create(t.Context(), journal.Run{ID: id, Parent: parent, Kind: "Agent", Created: journaltest.Epoch()}, journal.Batch{
		Lease: journal.Lease{Run: id, Owner: "somebody"}, Status: journal.Progress{State: journal.Ended}, Time: journaltest.Epoch(), Release: true,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARemovalTakesAlsoWhatARunStartsUntilItIsDeleted(t *testing.T) {
	store := memory.New(nil)
	leave(t, store, "root", "")
	leave(t, store, "child", "root")
	s := &session{app: &app{journalPath: filepath.Join(t.TempDir(), "journal.db")}, store: lateChild{Store: store, t: t, parent: "root"}}
	gone, err := s.remove(t.Context(), journal.Run{ID: "root"})
	if diff := cmp.Diff([]string{"child", "root", "late"}, gone); err != nil || diff != "" {
		t.Errorf("%v, removed (-want +got):\n%s", err, diff)
	}
	if left, err := store.Runs(t.Context(), journal.Filter{}); err != nil || len(left) != 0 {
		t.Errorf("%+v are left, %v", left, err)
	}
}

// What it names is gone, and what it does not name is there.
func TestAPruneThatIsInterruptedSaysWhatWent(t *testing.T) {
	p := newProject(t, nil)
	store := p.journal()
	defer store.Close()
	for i := range 40 {
		leave(t, store, fmt.Sprintf("run%02d", i), "")
	}
	p.slowDeletions()
	s := p.start("runs", "prune", "--older-than", "0s")
	p.eventually("a run is gone", func() bool { return len(p.listed(store)) < 40 })
	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	f := s.wait()
	if f.code != 130 || f.err != "pawl: interrupted; the remaining runs were not removed\n" {
		t.Errorf("exit code %d, %s", f.code, f.err)
	}
	there := p.listed(store)
	for line := range strings.Lines(f.out) {
		id := strings.TrimSuffix(strings.TrimPrefix(line, "removed "), "\n")
		if slices.Contains(there, id) {
			t.Errorf("%s is said to be removed and is there", id)
		}
		there = append(there, id)
	}
	if len(there) != 40 {
		t.Errorf("%d of 40 runs are there or said to be removed:\n%s", len(there), f.out)
	}
}

// slowDeletions has the journal take a while for each run that goes.
func (p project) slowDeletions() {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, ".pawl", "journal.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER slow BEFORE DELETE ON runs BEGIN SELECT length(hex(zeroblob(20000000))); END`); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) listed(store journal.Store) (ids []string) {
	p.t.Helper()
	rows, err := store.Runs(p.t.Context(), journal.Filter{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}
