package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// contested is a journal in which others get hold of runs after they were
// listed.
type contested struct {
	journal.Store
	rows []journal.Run
	// becomes is what others have made of a run when it is looked at, by what a
	// deletion of it gives.
	becomes map[string]func(*journal.Run)
	by      map[string]error
	// forks are those that are there when they are asked for.
	forks map[string]journal.Run
}

func (s contested) Runs(_ context.Context, f journal.Filter) ([]journal.Run, error) {
	if f.ForkOf == "" {
		return s.rows, nil
	}
	var of []journal.Run
	for _, r := range s.forks {
		if r.ForkOf == f.ForkOf {
			of = append(of, r)
		}
	}
	return of, nil
}

func (s contested) Run(_ context.Context, id string) (journal.Run, error) {
	if err := s.by[id]; errors.Is(err, journal.ErrNotFound) {
		return journal.Run{}, err
	}
	r := s.rows[slices.IndexFunc(s.rows, func(r journal.Run) bool { return r.ID == id })]
	if change, ok := s.becomes[id]; ok {
		change(&r)
	}
	return r, nil
}

func (s contested) Delete(_ context.Context, run string) error {
	if s.by[run] == nil {
		delete(s.forks, run)
	}
	return s.by[run]
}

// branches is a tree of two branches among other runs, newest first.
func branches() []journal.Run {
	row := func(id, parent string) journal.Run {
		return journal.Run{ID: id, Parent: parent, Progress: journal.Progress{State: journal.Parked}}
	}
	return []journal.Run{
		row("last", ""), row("grandchild", "younger"), row("younger", "root"), row("between", ""), row("older", "root"), row("root", ""), row("first", ""),
	}
}

func (s contested) prunes(t *testing.T, want ...string) {
	t.Helper()
	o := journal.PruneOptions{States: []journal.State{journal.Parked}, Before: journaltest.Epoch()}
	gone, err := journal.Prune(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range gone {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

func TestPruneKeepsTreeThatIsClaimedAfterListing(t *testing.T) {
	for name, become := range map[string]func(*journal.Run){
		"it is driven": func(r *journal.Run) { r.Owner, r.Expiry = "somebody", journaltest.Epoch().Add(time.Minute) },
		"it went on":   func(r *journal.Run) { r.Updated = journaltest.Epoch().Add(time.Second) },
		"it is forked": nil,
	} {
		for _, run := range []string{"root", "older", "grandchild"} {
			t.Run(run+": "+name, func(t *testing.T) {
				s := contested{rows: branches(), by: map[string]error{"last": journal.ErrNotFound}}
				if become == nil {
					s.forks = map[string]journal.Run{"fork": {ForkOf: run}}
				} else {
					s.becomes = map[string]func(*journal.Run){run: become}
				}
				s.prunes(t, "last", "between", "first")
			})
		}
	}
}

// Between the look at a tree and its deletion nothing holds it together.
func TestPruneKeepsRestOfTreeThatIsClaimedDuringDeletion(t *testing.T) {
	for name, err := range map[string]error{
		"it is driven": &journal.HeldError{Run: "younger", Owner: "somebody"},
		"it is forked": &journal.ForkedError{Run: "younger", Forks: []string{"fork"}},
	} {
		t.Run(name, func(t *testing.T) {
			contested{rows: branches(), by: map[string]error{"younger": err}}.prunes(t, "last", "between", "grandchild", "first")
		})
	}
}

func TestPruneSaysWhatWentBeforeItFailed(t *testing.T) {
	broken := errors.New("the disk failed")
	s := contested{rows: branches(), by: map[string]error{"younger": broken}}
	gone, err := journal.Prune(t.Context(), s, journal.PruneOptions{States: []journal.State{journal.Parked}, Before: journaltest.Epoch()})
	var ids []string
	for _, r := range gone {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff([]string{"last", "between", "grandchild"}, ids); !errors.Is(err, broken) || diff != "" {
		t.Errorf("%v, removed (-want +got):\n%s", err, diff)
	}
}

func TestADryRunNamesNoTreeThatAForkWhichStaysStandsOn(t *testing.T) {
	rows := branches()
	fork := &rows[slices.IndexFunc(rows, func(r journal.Run) bool { return r.ID == "between" })]
	fork.ForkOf, fork.State = "older", journal.Ended
	o := journal.PruneOptions{States: []journal.State{journal.Parked}, Before: journaltest.Epoch(), DryRun: true}
	would, err := journal.Prune(t.Context(), contested{rows: rows}, o)
	if err != nil || len(would) != 2 || would[0].ID != "last" || would[1].ID != "first" {
		t.Errorf("%v, it would remove %+v, want last and first", err, would)
	}
}

// What stands on a tree goes before any of it, also where it is older than some
// of it.
func TestPruneDeletesNothingOfATreeBeforeItsForks(t *testing.T) {
	rows := branches()
	fork := &rows[slices.IndexFunc(rows, func(r journal.Run) bool { return r.ID == "between" })]
	fork.ForkOf = "root"
	s := contested{rows: rows, forks: map[string]journal.Run{fork.ID: *fork}}
	t.Run("one that somebody drives by now", func(t *testing.T) {
		s.by = map[string]error{fork.ID: &journal.HeldError{Run: fork.ID, Owner: "somebody"}}
		s.prunes(t, "last", "first")
	})
	t.Run("one that nobody drives", func(t *testing.T) {
		s.by = nil
		s.prunes(t, "last", "between", "grandchild", "younger", "older", "root", "first")
	})
}
