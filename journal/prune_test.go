package journal_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// contested is a journal in which others have got hold of runs since they were
// listed: what a deletion of them gives.
type contested struct {
	journal.Store
	rows []journal.Run
	by   map[string]error
}

func (s contested) Runs(context.Context, journal.Filter) ([]journal.Run, error) { return s.rows, nil }

func (s contested) Delete(_ context.Context, run string) error { return s.by[run] }

func TestPruneLeavesTheTreeOfARunThatSomebodyHasGotHoldOfMeanwhile(t *testing.T) {
	row := func(id, parent string) journal.Run {
		return journal.Run{ID: id, Parent: parent, Status: journal.Status{State: journal.Parked}}
	}
	for name, err := range map[string]error{
		"it is driven": &journal.HeldError{Run: "child", Owner: "somebody"},
		"it is forked": &journal.ForkedError{Run: "child", Forks: []string{"fork"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := contested{
				rows: []journal.Run{row("last", ""), row("grandchild", "child"), row("child", "root"), row("root", ""), row("first", "")},
				by:   map[string]error{"child": err, "last": journal.ErrNotFound},
			}
			o := journal.PruneOptions{States: []journal.State{journal.Parked}, Before: journaltest.Epoch()}
			gone, err := journal.Prune(t.Context(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range gone {
				ids = append(ids, r.ID)
			}
			if diff := cmp.Diff([]string{"last", "grandchild", "first"}, ids); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}
