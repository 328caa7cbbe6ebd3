package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// A server looks for runs without a driver every second. What it reads does not grow
// with the runs that have one.
func TestRunsWithoutADriverAreFoundByAnIndex(t *testing.T) {
	s := open(t, place(t), postgres.Options{})
	expired := journaltest.Start(t, s, "expired") // a lease of a minute from the epoch
	parked := journaltest.Start(t, s, "parked")
	b := parked.Batch(t)
	b.Status.State, b.Status.Detail, b.Release = journal.Parked, "interrupted", true
	if err := parked.Write(t, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), expired.Lease); err != nil {
		t.Fatal(err)
	}
	if err := s.Fill(t.Context(), 20_000, 20); err != nil {
		t.Fatal(err)
	}
	for index, c := range map[string]struct {
		filter journal.Filter
		want   string
	}{
		"runs_free":        {journal.Filter{Roots: true, Free: true, States: []journal.State{journal.Queued, journal.Running, journal.Waiting}}, "expired"},
		"runs_interrupted": {journal.Filter{Roots: true, Free: true, States: []journal.State{journal.Parked}, Detail: "interrupted"}, "parked"},
		"runs_owner":       {journal.Filter{Owner: "worker-none"}, ""},
	} {
		plan, err := s.Plan(t.Context(), c.filter)
		if err != nil || !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("the plan does not use %s: %v\n%s", index, err, plan)
		}
		var rows []journal.Run
		began := time.Now()
		for range 10 { // more often than the database plans a statement anew
			if rows, err = s.Runs(t.Context(), c.filter); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %s a search", index, time.Since(began)/10)
		if ids := len(rows); c.want == "" && ids > 0 || c.want != "" && (ids != 1 || rows[0].ID != c.want) {
			t.Errorf("%s: got %d runs: %v", index, ids, rows)
		}
	}
	began := time.Now()
	owners, err := s.Owners(t.Context())
	if err != nil || len(owners) != 20 {
		t.Errorf("the holders are %v: %v", owners, err)
	}
	t.Logf("the holders: %s", time.Since(began))
}
