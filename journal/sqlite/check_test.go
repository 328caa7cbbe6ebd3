package sqlite_test

import (
	"errors"
	"os"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// What a disk does to a page need not meet any run, so that each of them is
// sound and the journal is not.
func TestCheckFindsWhatBelongsToNoRun(t *testing.T) {
	page := func(n int) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(b[n*4096+8 : n*4096+200])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		harm  func(t *testing.T, path string)
		sound bool
	}{
		"nothing":     {func(*testing.T, string) {}, true},
		"a page":      {page(3), false},
		"a run's row": {func(t *testing.T, path string) { tamper(t, path, `DELETE FROM runs WHERE id = 'a'`) }, false},
	} {
		path, s, d := begun(t)
		if err := d.Write(t, d.Batch(t, texts(40)...)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.harm(t, path)
		if err := open(t, path).Check(t.Context()); errors.Is(err, journal.ErrCorrupt) == c.sound || c.sound && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a deletion leaves behind, whole or half way, is in order.
func TestCheckPassesWhatWasDeleted(t *testing.T) {
	_, s, d := begun(t)
	end := event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer}}
	if err := d.Write(t, d.Batch(t, append(texts(600), end)...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("behind the deletion: %v", err)
	}
	journaltest.Start(t, s, "b")
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("with another run: %v", err)
	}
}
