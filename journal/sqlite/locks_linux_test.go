package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

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
			path, s, d := begun(t)
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
			path, s, d := begun(t)
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

// A program may have used SQLite before it opened a journal.
func TestLocksFromBeforeTheFirstJournalAreGivenUp(t *testing.T) {
	out, err := child(t, "older", filepath.Join(t.TempDir(), "other.db")).CombinedOutput()
	if want := "read: locked\nleft: free\n"; err != nil || string(out) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
}

// leaveOlderLocks says whether a transaction on another database, begun before
// the first journal was opened and ended after that, holds shared memory.
func leaveOlderLocks(path string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL; CREATE TABLE t (n)"); err != nil {
		return err
	}
	read, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	rows, err := read.QueryContext(ctx, "SELECT count(*) FROM t")
	if err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, path+"-journal.db", sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	// It stays open: closed, it would take the process's locks along.
	shm, err := os.Open(path + "-shm")
	if err != nil {
		return err
	}
	fmt.Println("read:", lockState(shm))
	if err := read.Rollback(); err != nil {
		return err
	}
	fmt.Println("left:", lockState(shm))
	return nil
}

// lockState looks at the locks of shared memory by which readers and writers
// agree, as another open file sees them.
func lockState(shm *os.File) string {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 120, Len: 8}
	switch err := unix.FcntlFlock(shm.Fd(), unix.F_OFD_GETLK, &lock); {
	case errors.Is(err, syscall.EINVAL):
		return "unknown"
	case err != nil:
		return err.Error()
	case lock.Type == unix.F_UNLCK:
		return "free"
	}
	return "locked"
}
