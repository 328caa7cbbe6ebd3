package sqlite_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

func big() event.Data {
	return event.InputReceived{Text: strings.Repeat("x", 20_000), By: "somebody"}
}

// fill appends until the store refuses and returns why.
func fill(t *testing.T, d *journaltest.Driver) error {
	t.Helper()
	for range 1000 {
		if err := d.Write(t, d.Batch(t, big())); err != nil {
			return err
		}
	}
	t.Fatal("the disk never filled up")
	return nil
}

// intact fails unless exactly what was acknowledged is there.
func intact(t *testing.T, s journal.Store, d *journaltest.Driver) {
	t.Helper()
	v, err := journal.Verify(t.Context(), s, d.Lease.Run, d.Head)
	if err != nil || v.Events != d.Seq || v.HeadSeq != d.Seq {
		t.Errorf("%+v, %v; acknowledged were %d events up to %s", v, err, d.Seq, d.Head)
	}
}

// rows: ALDO-63
func TestAFullJournalLosesNothingAndGoesOnWhenThereIsSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.LimitPages(sqlite.Options{}, 100))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, other := journaltest.Start(t, s, "a"), journaltest.Start(t, s, "b")
	if err := fill(t, d); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	intact(t, s, d)
	other.Append(t, event.InputReceived{Text: "small enough", By: "somebody"})
	if err := s.RaisePages(); err != nil {
		t.Fatal(err)
	}
	d.Append(t, big())
	intact(t, s, d)
	intact(t, s, other)
}

// SQLite ends a transaction itself when there is no space for a change.
func TestAnAppendThatThereIsNoSpaceForHarmsNoneInTheSameCommit(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.LimitPages(sqlite.Options{}, 40))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b, c := journaltest.Start(t, s, "a"), journaltest.Start(t, s, "b"), journaltest.Start(t, s, "c")
	for _, large := range []struct {
		what  string
		batch func() journal.Batch
	}{
		{"event", func() journal.Batch {
			return b.Batch(t, event.InputReceived{Text: strings.Repeat("x", 200_000), By: "somebody"})
		}},
		{"row", func() journal.Batch {
			batch := b.Batch(t, texts(1)...)
			batch.Status.Detail = strings.Repeat("x", 200_000)
			return batch
		}},
	} {
		first, last := a.Batch(t, texts(1)...), c.Batch(t, texts(1)...)
		got := s.AppendTogether(first, large.batch(), last)
		if got[0] != nil || !errors.Is(got[1], journal.ErrFull) || got[2] != nil {
			t.Fatalf("beside a large %s: %v, want ErrFull for the second alone", large.what, got)
		}
		a.Seq, a.Head, c.Seq, c.Head = a.Seq+1, first.Head, c.Seq+1, last.Head
	}
	for _, d := range []*journaltest.Driver{a, b, c} {
		intact(t, s, d)
	}
}

func TestANewerJournalIsRefusedAndNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Start(t, s, "a").End(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	setVersion(t, path, 99)
	wantRefusal(t, path, journal.ErrNewer)
}

// setVersion writes a format number into the header of a closed journal.
func setVersion(t *testing.T, path string, version byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0, 0, 0, version}, 60); err != nil {
		t.Fatal(err)
	}
}

// wantRefusal opens a file in both modes and wants it refused as it was, and
// nothing put beside it.
func wantRefusal(t *testing.T, path string, want error) {
	t.Helper()
	before := files(t, filepath.Dir(path))
	for _, o := range []sqlite.Options{{}, {ReadOnly: true}} {
		s, err := sqlite.Open(t.Context(), path, o)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("read-only %t: got %v, want %v", o.ReadOnly, err, want)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not name the file", err)
		}
	}
	after := files(t, filepath.Dir(path))
	for name, sum := range before {
		if after[name] != sum {
			t.Errorf("%s was changed or removed", name)
		}
		delete(after, name)
	}
	for name := range after {
		t.Errorf("%s was left behind", name)
	}
}

func files(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	sums := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		sums[path] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func TestWhatIsNotAJournalIsRefusedAndNotTouched(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want error
	}{
		"a text": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("# notes\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrForeign},
		"noise": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte{0xa5}, 10_000), 0o600); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrForeign},
		"a named pipe": {func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrForeign},
		"a database of somebody else": {func(t *testing.T, path string) {
			tamper(t, path, `CREATE TABLE customers (id INTEGER)`, `INSERT INTO customers VALUES (1)`)
		}, journal.ErrForeign},
		"a database of somebody else with a version": {func(t *testing.T, path string) {
			tamper(t, path, `CREATE TABLE customers (id INTEGER)`, `INSERT INTO customers VALUES (1)`)
			setVersion(t, path, 1)
		}, journal.ErrForeign},
		"a journal cut short": {func(t *testing.T, path string) {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			journaltest.Start(t, s, "a").Append(t, big(), big())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 3*4096+100); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			c.make(t, path)
			wantRefusal(t, path, c.want)
		})
	}
	t.Run("a directory", func(t *testing.T) { wantRefusal(t, t.TempDir(), journal.ErrForeign) })
}

// A process that is killed while it creates a journal leaves a file without content,
// which is not another program's.
func TestAJournalThatWasNeverFinishedHoldsNothingYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for _, made := range []func(){
		func() {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		func() { tamper(t, path, `CREATE TABLE brief (id INTEGER)`, `DROP TABLE brief`) },
	} {
		made()
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("to be read: %v", err)
		}
	}
	journaltest.Start(t, open(t, path), "a").Append(t, texts(1)...)
}

// SQLite keeps the log beside the target of a link, where a check of the link's name
// would not find it.
func TestAJournalIsWrittenByItsOwnNameAlone(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "journal.db"), filepath.Join(dir, "link.db")
	journaltest.Start(t, open(t, path), "a").Append(t, texts(1)...)
	if err := os.Symlink("journal.db", link); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), link, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), link+": it is a link to journal.db") {
		t.Errorf("it opens for writing with %v", err)
	}
	s, err := sqlite.Open(t.Context(), link, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if runs, err := s.Runs(t.Context(), journal.Filter{}); err != nil || len(runs) != 1 {
		t.Errorf("read, it has %+v: %v", runs, err)
	}
}

// Reading a damaged page returns an error, not a missing run.
func TestADamagedPageIsDamageAndNotAbsence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := journaltest.Start(t, s, "a")
	for range 50 {
		d.Append(t, texts(10)...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The header and the schema are left alone, or the file does not open.
	const firstData = 2 * 4096
	for page := firstData; page+4096 <= len(data); page += 4096 {
		copy(data[page:], bytes.Repeat([]byte{0xff}, 64))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
	if err == nil {
		defer s.Close()
		_, err = journal.Verify(t.Context(), s, "a", "")
	}
	if !errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v, want ErrCorrupt alone", err)
	}
}

func TestAFileThatIsMovedAwayTakesNoMoreWrites(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced by another journal": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
		"its log deleted": func(path string) error { return os.Remove(path + "-wal") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			d := journaltest.Start(t, s, "a")
			if err := do(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := d.Write(t, d.Batch(t, texts(1)...)); !errors.Is(err, journal.ErrReplaced) {
					t.Errorf("got %v, want ErrReplaced", err)
				}
			}
		})
	}
}

// The first error after a file was moved away is arbitrary; reads and writes report
// that it was moved.
func TestAMovedFileIsToldWhateverFailsFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "journal.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	failures := []struct {
		err  error
		kind error // while the file is there
	}{
		{sqlite.Failed(sqlite.CodeRead), journal.ErrIO}, {sqlite.Failed(sqlite.CodeMoved), journal.ErrReadOnly},
		{sqlite.Failed(sqlite.CodeCorrupt), journal.ErrCorrupt}, {sqlite.Failed(sqlite.CodeNotOpened), nil}, {syscall.EIO, journal.ErrIO},
	}
	for _, f := range failures {
		if got := s.Cause(f.err); errors.Is(got, journal.ErrReplaced) || f.kind != nil && !errors.Is(got, f.kind) {
			t.Errorf("%v of a file that is there is told as %v", f.err, got)
		}
	}
	if err := os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"); err != nil {
		t.Fatal(err)
	}
	for _, f := range failures {
		if got := s.Cause(f.err); !errors.Is(got, journal.ErrReplaced) || f.kind != nil && errors.Is(got, f.kind) {
			t.Errorf("%v of a file that was moved is told as %v", f.err, got)
		}
	}
	for _, err := range []error{sqlite.Failed(sqlite.CodeBusy), journal.ErrStale, fs.ErrNotExist} {
		if got := s.Cause(err); errors.Is(got, journal.ErrReplaced) {
			t.Errorf("%v, which says nothing of the file, is told as %v", err, got)
		}
	}
}

func TestClosedIsClosedForEverybody(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const writers = 32
	var drivers []*journaltest.Driver
	for i := range writers {
		drivers = append(drivers, journaltest.Start(t, s, strings.Repeat("x", i+1)))
	}
	refused := make(chan error, writers)
	for _, d := range drivers {
		go func() {
			for {
				if err := d.Write(t, d.Batch(t, texts(1)...)); err != nil {
					refused <- err
					return
				}
			}
		}()
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for range writers {
		select {
		case <-refused:
		case <-time.After(2 * time.Minute):
			t.Fatal("an append waits for a journal that is closed")
		}
	}
}
