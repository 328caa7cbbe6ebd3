package sqlite_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// written6 copies a journal that version 6 wrote, in which each event had a row. Its
// runs are a root with a child and a fork, one that asks and has a command in its
// inbox, one that is parked, one of 402 events of which one is large, and one that was
// deleted and owned the newest pos.
func written6(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	copyFile(t, filepath.Join("testdata", "format6.db"), path)
	return path
}

// exports is a line for each run, with the digest of what it is exported as.
func exports(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	rows, err := s.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, r := range rows {
		var out bytes.Buffer
		x, err := journal.Export(t.Context(), s, r.ID, &out)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s %d %x\n", r.ID, x.Events, sha256.Sum256(out.Bytes()))
	}
	return lines.String()
}

// What is read of a journal that version 6 wrote is the same before it is moved over,
// after, and when it goes on: bytes, positions, rows.
func TestAJournalOfVersion6IsReadAsItWasWritten(t *testing.T) {
	path := written6(t)
	golden, err := os.ReadFile(filepath.Join("testdata", "format6.txt"))
	if err != nil {
		t.Fatal(err)
	}
	old := openAt(t, path, sqlite.Options{ReadOnly: true})
	before := everything(t, old)
	if diff := cmp.Diff(string(golden), exports(t, old)); diff != "" {
		t.Errorf("read only (-want +got):\n%s", diff)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		s := openAt(t, path, sqlite.Options{})
		if diff := cmp.Diff(string(golden), exports(t, s)); diff != "" {
			t.Errorf("opened %d times (-want +got):\n%s", round+1, diff)
		}
		if after := everything(t, s); !reflect.DeepEqual(before, after) {
			t.Errorf("opened %d times:\n%+v, before:\n%+v", round+1, after, before)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, path, `SELECT count(*) FROM commits`); n > len(before.Records)/3 {
		t.Errorf("%d events have %d rows", len(before.Records), n)
	}

	s := openAt(t, path, sqlite.Options{})
	lease, err := s.Acquire(t.Context(), "asks", "heir", "owner", 0)
	if err != nil || lease.Epoch != 2 {
		t.Fatal(lease, err)
	}
	asks, _ := s.Run(t.Context(), "asks")
	d := &journaltest.Driver{Store: s, Lease: lease, Seq: asks.Seq, Head: asks.Head}
	b := d.Batch(t, event.ToolApprovalResolved{CallID: "c"})
	commands, err := s.Inbox(t.Context(), "asks")
	if err != nil || len(commands) != 1 {
		t.Fatal(commands, err)
	}
	b.Consumed = []int64{commands[0].ID}
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	if newest := before.Records[len(before.Records)-1].Pos; d.First <= newest+1 {
		t.Errorf("the next pos is %d, where %d was given and a deleted run had more", d.First, newest)
	}
	if row, err := s.Run(t.Context(), "asks"); err != nil || row.State != journal.Running || row.Waits != nil || row.Seq != 3 {
		t.Errorf("%+v, %v", row, err)
	}
	intact(t, s, d)
}

// all is all that can be read.
type all struct {
	Rows     []journal.Run
	Records  []journal.Record
	Own      map[string][]journal.Record
	Commands []journal.Command
	Notes    []journal.Note
	Verified map[string]string
}

func everything(t *testing.T, s *sqlite.Store) (a all) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	a.Rows, err = s.Runs(t.Context(), journal.Filter{})
	must(err)
	a.Records, err = s.Tail(t.Context(), 0, 0)
	must(err)
	a.Commands, err = s.Inbox(t.Context(), "")
	must(err)
	a.Notes, err = s.Notes(t.Context(), 0, 0)
	must(err)
	a.Own, a.Verified = map[string][]journal.Record{}, map[string]string{}
	for _, r := range a.Rows {
		a.Own[r.ID], err = s.Records(t.Context(), r.ID, 0, 0)
		must(err)
		v, err := journal.Verify(t.Context(), s, r.ID, r.Head)
		a.Verified[r.ID] = fmt.Sprint(v, err)
	}
	return a
}
