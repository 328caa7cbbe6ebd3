package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// A snapshot is replaced by the next with its name, is read by other processes, and goes
// with its run.
func TestASnapshotIsKeptAsLongAsItsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	journaltest.Start(t, s, "one")
	journaltest.Start(t, s, "other")
	kept := func(s *sqlite.Store, run, name string) journal.Snapshot {
		t.Helper()
		k, err := s.Kept(t.Context(), run, name)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := kept(s, "one", "view"); k.Version != "" || k.Body != nil {
		t.Errorf("before any was kept there is %+v", k)
	}
	first := journal.Snapshot{Version: "1", Seq: 1, Head: "a", Body: []byte("first")}
	second := journal.Snapshot{Version: "2", Seq: 2, Head: "b", Body: []byte("second")}
	for _, run := range []string{"one", "other", "none"} {
		for _, k := range []journal.Snapshot{first, second} {
			if err := s.Keep(t.Context(), run, "view", k); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Keep(t.Context(), "one", "state", first); err != nil {
		t.Fatal(err)
	}
	reader := open(t, path)
	for _, c := range []struct {
		run, name string
		want      journal.Snapshot
	}{{"one", "view", second}, {"one", "state", first}, {"other", "view", second}, {"other", "state", journal.Snapshot{}}, {"none", "view", journal.Snapshot{}}} {
		if diff := cmp.Diff(c.want, kept(reader, c.run, c.name)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.name, c.run, diff)
		}
	}
	if err := s.Delete(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if k := kept(reader, "other", "view"); k.Body != nil {
		t.Errorf("the snapshot outlives its run: %+v", k)
	}
	if diff := cmp.Diff(second, kept(reader, "one", "view")); diff != "" {
		t.Errorf("after another run was deleted (-want +got):\n%s", diff)
	}
	journaltest.Start(t, s, "other")
	if k := kept(reader, "other", "view"); k.Body != nil {
		t.Errorf("a new run with the id has the snapshot of the old one: %+v", k)
	}
}
