package journaltest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

func snapshotContract() []contract {
	return []contract{{"a snapshot is kept as long as its run", snapshotKept}}
}

// A snapshot is replaced by the next with its name, and deleted with its run.
func snapshotKept(t *testing.T, s journal.Store, c *clock) {
	keeps := optional[journal.KeepsSnapshots](t, s, "snapshots")
	Start(t, s, "one")
	Start(t, s, "other")
	c.Advance(ttl)
	kept := func(run, name string) journal.Snapshot {
		t.Helper()
		k, err := keeps.Kept(t.Context(), run, name)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := kept("one", "view"); k.Version != "" || k.Body != nil {
		t.Errorf("before any was kept there is %+v", k)
	}
	first := journal.Snapshot{Version: "1", Seq: 1, Head: "a", Body: []byte("first")}
	second := journal.Snapshot{Version: "2", Seq: 2, Head: "b", Body: []byte("second")}
	for _, run := range []string{"one", "other", "none"} {
		for _, k := range []journal.Snapshot{first, second} {
			if err := keeps.Keep(t.Context(), run, "view", k); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := keeps.Keep(t.Context(), "one", "state", first); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run, name string
		want      journal.Snapshot
	}{{"one", "view", second}, {"one", "state", first}, {"other", "view", second}, {"other", "state", journal.Snapshot{}}, {"none", "view", journal.Snapshot{}}} {
		if diff := cmp.Diff(c.want, kept(c.run, c.name)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.name, c.run, diff)
		}
	}
	if err := s.Delete(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if k := kept("other", "view"); k.Body != nil {
		t.Errorf("the snapshot outlives its run: %+v", k)
	}
	if diff := cmp.Diff(second, kept("one", "view")); diff != "" {
		t.Errorf("after another run was deleted (-want +got):\n%s", diff)
	}
	Start(t, s, "other")
	if k := kept("other", "view"); k.Body != nil {
		t.Errorf("a new run with the id has the snapshot of the old one: %+v", k)
	}
}
