package sqlite_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

func TestAppendIsOneRow(t *testing.T) {
	path, s, d := begun(t)
	d.Append(t, texts(5)...)
	d.Append(t, texts(1)...)
	if n := count(t, path, `SELECT count(*) FROM commits`); n != 3 {
		t.Errorf("three appends are %d rows", n)
	}
	if n := count(t, path, `SELECT count(*) FROM commits WHERE seq = 6 AND events = 5 AND pos = 6`); n != 1 {
		t.Error("no row has events 2 to 6")
	}
	intact(t, s, d)
}

// To read an event is to read its row, so a row is bounded.
func TestLargeAppendIsSeveralRows(t *testing.T) {
	for name, tt := range map[string]struct {
		data []event.Data
		rows int
	}{
		"many":              {slices.Repeat(texts(1), 130), 3},
		"as many as fit":    {slices.Repeat(texts(1), 64), 1},
		"large":             {slices.Repeat([]event.Data{message(30_000)}, 5), 3},
		"larger than a row": {[]event.Data{message(100), message(200_000), message(100)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			path, s, d := begun(t)
			before := count(t, path, `SELECT count(*) FROM commits`)
			b := d.Batch(t, tt.data...)
			if err := d.Write(t, b); err != nil {
				t.Fatal(err)
			}
			if n := count(t, path, `SELECT count(*) FROM commits`) - before; n != tt.rows {
				t.Errorf("%d rows, want %d", n, tt.rows)
			}
			d.Append(t, texts(1)...)
			intact(t, s, d)
			// From each event on, and as many as are wanted.
			for after := range d.Seq {
				got, err := s.Records(t.Context(), "a", after, 2)
				if err != nil || len(got) != int(min(2, d.Seq-after)) || got[0].Seq != after+1 || got[0].Pos != after+1 {
					t.Fatalf("after %d: %d records, %v", after, len(got), err)
				}
				if after > 0 && after <= int64(len(b.Records)) {
					if diff := cmp.Diff(b.Records[after-1].Body, got[0].Body); diff != "" {
						t.Fatalf("event %d: %s", after+1, diff)
					}
				}
				tail, err := s.Tail(t.Context(), after, 1)
				if err != nil || len(tail) != 1 || tail[0].Pos != after+1 {
					t.Fatalf("the tail after %d: %+v, %v", after, tail, err)
				}
			}
		})
	}
}

// A damaged row is named by its first event that cannot be read, and what is before it
// is read.
func TestDamagedCommitIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		seq    int64
	}{
		"cut short":            {`body = substr(body, 1, length(body) - 1)`, 9},
		"longer":               {`body = CAST(body || ' ' AS BLOB)`, 9},
		"fewer than it says":   {`events = 4`, 7},
		"more than it says":    {`events = 2`, 7},
		"a length beyond":      {`body = CAST(x'ff' || substr(body, 2) AS BLOB)`, 7},
		"nothing":              {`body = x''`, 7},
		"a length without end": {`body = x'ffffffffffffffffffffffff'`, 7},
	} {
		t.Run(name, func(t *testing.T) {
			path, s, d := begun(t)
			apart(t, d, texts(5))
			d.Append(t, texts(3)...)
			tamper(t, path, `UPDATE commits SET `+tt.change+` WHERE seq = 9`)
			_, err := journal.Verify(t.Context(), s, "a", "")
			if damage, ok := errors.AsType[*journal.CorruptError](err); !ok || damage.Seq != tt.seq {
				t.Errorf("verify says %v, want damage at %d", err, tt.seq)
			}
			if records, err := s.Records(t.Context(), "a", 0, 0); !errors.Is(err, journal.ErrCorrupt) || len(records) < 5 {
				t.Errorf("%d records, %v", len(records), err)
			}
		})
	}
}

// What lists show of a run rarely changes, and what does not is not written.
func TestRowIsWrittenWhenListsShowSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path)
	d := journaltest.Start(t, s, "a")
	tamper(t, path,
		`CREATE TABLE written (state TEXT, detail TEXT, waits TEXT)`,
		`CREATE TRIGGER noted AFTER UPDATE ON runs BEGIN INSERT INTO written VALUES (new.state, new.detail, new.waits); END`)
	asks := &journal.Waits{Questions: []journal.Wait{{ID: "c", Kind: event.QuestionCall, Seq: 4}}}
	for i, tt := range []struct {
		status journal.Progress
		writes bool
	}{
		{journal.Progress{State: journal.Running}, false},
		{journal.Progress{State: journal.Running, Cycles: 7}, false},
		{journal.Progress{State: journal.Running, Waits: &journal.Waits{}}, true},
		{journal.Progress{State: journal.Running, Waits: &journal.Waits{}}, false},
		{journal.Progress{State: journal.Waiting, Detail: "retry", Waits: &journal.Waits{}}, true},
		{journal.Progress{State: journal.Waiting, Detail: "time", Waits: &journal.Waits{}}, true},
		{journal.Progress{State: journal.Waiting, Detail: "time", Waits: asks}, true},
		{journal.Progress{State: journal.Waiting, Detail: "time", Cycles: 8, Waits: asks}, false},
		{journal.Progress{State: journal.Running, Cycles: 8}, true},
	} {
		before := count(t, path, `SELECT count(*) FROM written`)
		b := d.Batch(t, texts(2)...)
		b.Status = tt.status
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
		if wrote := count(t, path, `SELECT count(*) FROM written`) > before; wrote != tt.writes {
			t.Errorf("append %d: the row was written: %t", i, wrote)
		}
		row, err := s.Run(t.Context(), "a")
		if diff := cmp.Diff(tt.status, row.Progress); err != nil || diff != "" || row.Seq != d.Seq || row.Head != d.Head {
			t.Errorf("append %d: seq %d, %v (-want +got):\n%s", i, row.Seq, err, diff)
		}
	}
	// Another process had the lease meanwhile and left the run elsewhere.
	other := open(t, path)
	away := *d
	away.Store = other
	b := away.Batch(t, texts(1)...)
	b.Status = journal.Progress{State: journal.Parked, Detail: "interrupted"}
	if err := away.Write(t, b); err != nil {
		t.Fatal(err)
	}
	away.Store = s
	away.Append(t, texts(1)...)
	if row, err := s.Run(t.Context(), "a"); err != nil || row.State != journal.Running || row.Detail != "" {
		t.Errorf("%+v, %v", row, err)
	}
	// A run that has ended shows what the last append says, and takes none.
	away.End(t)
	again := away
	again.Seq--
	end := again.Batch(t, event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true}})
	end.Records[0].Seq, end.Head = away.Seq+1, strings.Repeat("0", 64)
	if _, err := s.Append(t.Context(), end); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("a second end: %v, want ErrEnded", err)
	}
}

// What is read by types is what a reader of everything keeps.
func TestEventsAreReadByTheirTypes(t *testing.T) {
	for name, path := range map[string]string{"of this version": upgraded(t, written6(t)), "read only, of an older one": written6(t)} {
		s := openAt(t, path, sqlite.Options{ReadOnly: true})
		for _, run := range []string{"root", "child", "other", "fork"} {
			whole, err := s.Records(t.Context(), run, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, types := range [][]event.Type{
				{event.TypeToolCall}, {event.TypeToolResult, event.TypeCycleStart}, {event.TypeInputReceived}, {event.TypeRunForked, event.TypeText}, {event.TypeNudge},
			} {
				var want []journal.Record
				for _, r := range whole {
					if slices.Contains(types, event.Type(r.Type)) {
						want = append(want, r)
					}
				}
				var got []journal.Record
				for after, more := int64(0), true; more; {
					page, err := s.RecordsOf(t.Context(), run, after, 3, types...)
					if err != nil {
						t.Fatal(err)
					}
					if more = len(page) == 3; len(page) > 0 {
						after = page[len(page)-1].Seq
					}
					got = append(got, page...)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, run %s, %v (-want +got):\n%s", name, run, types, diff)
				}
				if all, err := s.RecordsOf(t.Context(), run, 0, 0, types...); err != nil || len(all) != len(want) {
					t.Errorf("%s, run %s, %v: %d of %d without a limit, %v", name, run, types, len(all), len(want), err)
				}
			}
		}
	}
}

// Rows that cannot have an event of a type are not opened: a damaged one is no matter.
func TestRowsWithoutATypeAreNotRead(t *testing.T) {
	path, s, d := begun(t)
	d.Append(t, texts(3)...)
	d.Append(t, event.Checkpoint{Label: "here"}, event.Checkpoint{Label: "there"})
	tamper(t, path, `UPDATE commits SET body = x'ff' WHERE seq = 4`)
	got, err := s.RecordsOf(t.Context(), "a", 0, 0, event.Checkpoint{}.EventType())
	if err != nil || len(got) != 2 || got[0].Seq != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.RecordsOf(t.Context(), "a", 0, 0, event.TypeInputReceived); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("the damaged one: %v", err)
	}
}

func upgraded(t *testing.T, path string) string {
	t.Helper()
	s := openAt(t, path, sqlite.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
