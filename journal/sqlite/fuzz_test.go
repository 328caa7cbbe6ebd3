package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// FuzzOpen gives a store whatever a disk may hold: it opens or refuses it,
// reads it or says why not, and leaves it as it was.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal.db")
	s, err := sqlite.Open(f.Context(), path, sqlite.Options{})
	if err != nil {
		f.Fatal(err)
	}
	journaltest.Start(f, s, "a").Append(f, texts(3)...)
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(whole)
	f.Add(whole[:100])
	f.Add(whole[:5000])
	f.Add(append(bytes.Clone(whole[:4096]), make([]byte, len(whole)-4096)...))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "journal.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true}); err == nil {
			if rows, err := s.Runs(t.Context(), journal.Filter{}); err == nil {
				for _, r := range rows {
					_, _ = journal.Verify(t.Context(), s, r.ID, "")
				}
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("the file was changed (%v)", err)
		}
	})
}
