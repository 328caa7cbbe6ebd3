package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// There may be a hundred thousand others.
func TestWhatBelongsToARunIsFoundWithoutLookingAtEveryOther(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	children, ofParent := s.Listing(journal.Filter{Parent: "a", States: []journal.State{journal.Parked}})
	forks, ofFork := s.Listing(journal.Filter{ForkOf: "a"})
	for index, tt := range map[string]struct {
		query string
		args  []any
	}{
		"runs_parent": {children, ofParent},
		"runs_fork":   {forks, ofFork},
		"inbox_run":   {sqlite.OwnInbox, []any{"a"}},
	} {
		plan, err := s.Plan(t.Context(), tt.query, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan[0], "USING INDEX "+index) {
			t.Errorf("%s: %s", tt.query, strings.Join(plan, "; "))
		}
	}
}

// There may be thousands of older commands that no driver has taken.
func TestNewCommandsAreFoundWithoutLookingAtOlderOnes(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	plan, err := s.Plan(t.Context(), sqlite.NewCommands, int64(1))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(plan[0], "SEARCH i USING INTEGER PRIMARY KEY (rowid>?)") {
		t.Error(strings.Join(plan, "; "))
	}
}

func TestReadingEventsCompilesNoQueryAgain(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	journaltest.Start(t, s, "a").Append(t, texts(5)...)
	for name, tt := range map[string]struct {
		query string
		args  [][]any
	}{
		"of a run":  {sqlite.OwnLog, [][]any{{"a", int64(0), int64(1)}, {"a", int64(2), int64(3)}, {"a", int64(4), int64(-1)}}},
		"of others": {sqlite.TailLog, [][]any{{int64(0), int64(1)}, {int64(2), int64(3)}, {int64(4), int64(-1)}}},
	} {
		n, err := s.Recompiled(tt.query, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			t.Errorf("events %s: compiled again %d times", name, n)
		}
	}
}
