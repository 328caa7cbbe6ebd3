package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// readAll reads a journal's files as a search in a workspace would.
func readAll(t *testing.T, path string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if _, err := os.ReadFile(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// looks are what may happen to a journal that this process has open.
var looks = map[string]func(t *testing.T, path string){
	"its files are read": readAll,
	"it is opened again": func(t *testing.T, path string) {
		for _, o := range []sqlite.Options{{}, {ReadOnly: true}} {
			if err := openAt(t, path, o).Close(); err != nil {
				t.Fatal(err)
			}
		}
	},
}

// Another process that leaves believes that it is the last when it finds no
// locks, and takes the log along.
func TestAJournalThatWasReadHereKeepsItsLogWhenOthersLeave(t *testing.T) {
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s := open(t, path)
			d := journaltest.Start(t, s, "a")
			look(t, path)
			if out, err := child(t, "send", path).CombinedOutput(); err != nil || string(out) != "<nil>\n" {
				t.Fatalf("another process: %v\n%s", err, out)
			}
			d.Append(t, texts(2)...)
			intact(t, s, d)
		})
	}
}

func TestAJournalThatIsReadHereLetsNobodyIntoATransaction(t *testing.T) {
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s := open(t, path)
			d := journaltest.Start(t, s, "a")
			if err := s.During(func() {
				look(t, path)
				out, err := child(t, "send", path).CombinedOutput()
				if want := journal.ErrLocked.Error() + "\n"; err != nil || string(out) != want {
					t.Errorf("another process: %v\n%s", err, out)
				}
			}); err != nil {
				t.Fatal(err)
			}
			d.Append(t, texts(1)...)
			intact(t, s, d)
		})
	}
}

// The last to leave takes the log along, in one process and in several.
func TestTheLastToLeaveRemovesTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	first, second, reader := open(t, path), open(t, path), openAt(t, path, sqlite.Options{ReadOnly: true})
	journaltest.Start(t, first, "a").Append(t, texts(1)...)
	for i, s := range []*sqlite.Store{first, reader, second} {
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("before the store %d was closed: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
}
