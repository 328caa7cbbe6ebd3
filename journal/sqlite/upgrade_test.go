package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// downgrades turn a file of a version into one of the version before.
var downgrades = map[int][]string{
	7: {
		"DROP TABLE commits", "DROP TABLE heads", "CREATE INDEX log_block ON log (pos >> 10, rid, seq)", "PRAGMA user_version = 6",
	},
	6: {"ALTER TABLE runs DROP COLUMN waits", "PRAGMA user_version = 5"},
	5: {"DROP TABLE notes", "PRAGMA user_version = 4"},
	4: {
		"DROP INDEX runs_root", "ALTER TABLE runs DROP COLUMN root", "ALTER TABLE runs DROP COLUMN depth", "PRAGMA user_version = 3",
	},
	3: {
		"DROP INDEX log_block", "ALTER TABLE log RENAME TO events", "CREATE UNIQUE INDEX events_run ON events (rid, seq)",
		"ALTER TABLE runs DROP COLUMN first", "ALTER TABLE runs DROP COLUMN last",
		"ALTER TABLE deleted DROP COLUMN first", "ALTER TABLE deleted DROP COLUMN last",
		"DELETE FROM deleted WHERE rid = 0", "PRAGMA user_version = 2",
	},
	2: {
		"DROP INDEX runs_fork", "ALTER TABLE runs DROP COLUMN fork_of", "ALTER TABLE runs DROP COLUMN fork_seq",
		"PRAGMA user_version = 1",
	},
}

// unpack gives each event a row, and each run a row that is whole.
func unpack(t *testing.T, db *sql.DB) {
	t.Helper()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec(`CREATE TABLE log (pos INTEGER PRIMARY KEY, rid INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, body BLOB NOT NULL)`)
	for _, column := range []string{"owner TEXT", "epoch INTEGER", "expiry INTEGER", "seq INTEGER", "head TEXT", "last INTEGER", "cycles INTEGER", "updated INTEGER"} {
		name, _, _ := strings.Cut(column, " ")
		exec("ALTER TABLE runs ADD COLUMN " + column + " NOT NULL DEFAULT ''")
		exec("UPDATE runs SET " + name + " = (SELECT " + name + " FROM heads WHERE heads.rid = runs.rid)")
	}
	rows, err := db.Query(`SELECT pos, rid, seq, events, body FROM commits`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var pos, rid, seq, n int64
		var body []byte
		if err := rows.Scan(&pos, &rid, &seq, &n, &body); err != nil {
			t.Fatal(err)
		}
		records, err := sqlite.Unpack(pos, seq, max(n, 0), body)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if _, err := tx.Exec(`INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5)`, r.Pos, rid, r.Seq, r.Type, append([]byte{}, r.Body...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(rows.Err(), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func downgrade(t *testing.T, path string, to int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for from := sqlite.Format; from > to; from-- {
		if from == 7 {
			unpack(t, db)
		}
		for _, q := range downgrades[from] {
			if _, err := db.Exec(q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
}

// older makes a journal of an older version: two runs that took turns for more
// than a block of positions, and one that was deleted and owned the newest pos.
func older(t *testing.T, version int) (path string, drivers []*journaltest.Driver) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	s := openAt(t, path, sqlite.Options{})
	drivers = []*journaltest.Driver{journaltest.Start(t, s, "a"), journaltest.Start(t, s, "b")}
	for range 6 {
		for _, d := range drivers {
			d.Append(t, slices.Repeat(texts(1), 150)...)
		}
	}
	long(t, s, "gone", 3)
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	downgrade(t, path, version)
	return path, drivers
}

func openAt(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	o.Now = journaltest.Epoch
	s, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAJournalOfAnOlderVersionIsReadAndUpgraded(t *testing.T) {
	for version := 1; version < sqlite.Format; version++ {
		path, drivers := older(t, version)
		old := openAt(t, path, sqlite.Options{ReadOnly: true})
		for _, d := range drivers {
			intact(t, old, d)
		}
		before, err := old.Tail(t.Context(), 0, 0)
		if err != nil || len(before) != 1802 {
			t.Errorf("version %d, read only: %d events in the tail, %v", version, len(before), err)
		}
		if last, err := old.Last(t.Context()); err != nil || last < before[len(before)-1].Pos || before[0].Root != before[0].Run {
			t.Errorf("version %d, read only: the last pos is %d, %v; the first event is of the tree %q", version, last, err, before[0].Root)
		}
		if forks, err := old.Runs(t.Context(), journal.Filter{ForkOf: "a"}); err != nil || len(forks) != 0 {
			t.Errorf("version %d, its forks: %v, %v", version, forks, err)
		}
		if tree, err := old.Tree(t.Context(), "a", before[1000].Pos, 0); err != nil || len(tree) != 351 {
			t.Errorf("version %d, read only: %d events in the tree, %v", version, len(tree), err)
		}
		if tree, err := old.Runs(t.Context(), journal.Filter{Root: "a"}); err != nil || len(tree) != 1 || tree[0].Root != "a" {
			t.Errorf("version %d, the tree: %+v, %v", version, tree, err)
		}
		if row, err := old.Run(t.Context(), "a"); err != nil || row.Waits != nil {
			t.Errorf("version %d, read only: what the run waits for is known: %+v, %v", version, row.Waits, err)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}

		s := openAt(t, path, sqlite.Options{})
		if row, err := s.Run(t.Context(), "a"); err != nil || row.Waits != nil {
			t.Errorf("version %d, upgraded: what the run waits for is known: %+v, %v", version, row.Waits, err)
		}
		for _, d := range drivers {
			d.Store = s
			d.Append(t, texts(2)...)
			intact(t, s, d)
		}
		if tree, err := s.Runs(t.Context(), journal.Filter{Root: "a"}); err != nil || len(tree) != 1 || tree[0].Root != "a" {
			t.Errorf("version %d, upgraded, the tree: %+v, %v", version, tree, err)
		}
		// The deleted run had three events and its start behind the others.
		if after, err := s.Tail(t.Context(), before[1801].Pos, 0); err != nil || len(after) != 4 || after[0].Pos != before[1801].Pos+5 {
			t.Errorf("version %d: %d new events, %v", version, len(after), err)
		}
		journaltest.Fork(t, s, "f", "a", 1)
		if v, err := journal.Verify(t.Context(), s, "f", ""); err != nil || v.Events != 2 {
			t.Errorf("version %d, a fork: %+v, %v", version, v, err)
		}
		long(t, s, "gone too", 3)
		if err := s.Delete(t.Context(), "gone too"); err != nil {
			t.Fatal(err)
		}
		if n := count(t, path, `SELECT count(*) FROM commits WHERE rid = 0`); n != 1 {
			t.Errorf("version %d: %d events without a run, want only the newest", version, n)
		}
	}
}

func TestAnUpgradeThatFailsLeavesTheJournalAsItWas(t *testing.T) {
	path, drivers := older(t, 2)
	// What the last step of the upgrade makes is there already.
	tamper(t, path, `CREATE INDEX log_block ON runs (kind)`)
	if s, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
		_ = s.Close()
		t.Fatal("the upgrade did not fail")
	}
	if n := count(t, path, `SELECT user_version FROM pragma_user_version`); n != 2 {
		t.Errorf("the file has version %d", n)
	}
	tamper(t, path, `DROP INDEX log_block`)
	s := openAt(t, path, sqlite.Options{})
	for _, d := range drivers {
		intact(t, s, d)
	}
}

// A process of an older version that has the file open must not append what
// this one would not find.
func TestAnOlderProcessStopsWritingWhenTheJournalIsUpgraded(t *testing.T) {
	for version, query := range map[int]string{
		2: `INSERT INTO events (rid, seq, type, body) VALUES (1, 10000, '', x'')`,
		6: `INSERT INTO log (rid, seq, type, body) VALUES (1, 10000, '', x'')`,
	} {
		path, _ := older(t, version)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		insert, err := db.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		defer insert.Close()
		openAt(t, path, sqlite.Options{})
		if _, err := insert.Exec(); err == nil {
			t.Errorf("version %d goes on writing", version)
		}
	}
}

// Events of a run that follow each other with a gap between their positions, which a
// deleted run left, keep their positions.
func TestUpgradeKeepsPositionsAroundADeletedRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := openAt(t, path, sqlite.Options{})
	d := journaltest.Start(t, s, "a")
	d.Append(t, texts(3)...)
	long(t, s, "gone", 5)
	d.Append(t, texts(3)...)
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	before := everything(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	downgrade(t, path, 6)
	s = openAt(t, path, sqlite.Options{})
	if after := everything(t, s); !reflect.DeepEqual(before, after) {
		t.Errorf("upgraded:\n%+v, before:\n%+v", after, before)
	}
	d.Store = s
	d.Append(t, texts(1)...)
	intact(t, s, d)
}

// A run that pauses while others write is found on both sides of the gap, from
// every event on.
func TestARunIsReadAcrossBlocksOfPositions(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	a, b := journaltest.Start(t, s, "a"), journaltest.Start(t, s, "b")
	a.Append(t, slices.Repeat(texts(1), 1500)...)
	b.Append(t, slices.Repeat(texts(1), 4000)...)
	a.Append(t, slices.Repeat(texts(1), 1500)...)
	intact(t, s, a)
	for _, c := range []struct{ after, limit int64 }{
		{0, 0}, {0, 10}, {1, 0}, {1023, 5}, {1500, 5}, {1501, 5}, {1502, 0}, {2999, 0}, {3000, 1}, {3001, 0}, {9999, 0},
	} {
		records, err := s.Records(t.Context(), "a", c.after, int(c.limit))
		want := max(3001-c.after, 0)
		if c.limit > 0 {
			want = min(want, c.limit)
		}
		if err != nil || int64(len(records)) != want {
			t.Errorf("after %d, at most %d: %d records, %v", c.after, c.limit, len(records), err)
		}
		for i, r := range records {
			if r.Seq != c.after+int64(i)+1 {
				t.Fatalf("after %d: record %d is event %d", c.after, i, r.Seq)
			}
		}
	}
}

func TestARunIsReadAcrossBlocksThatAnotherProcessWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	here, there := openAt(t, path, sqlite.Options{}), openAt(t, path, sqlite.Options{})
	a, b := journaltest.Start(t, here, "a"), journaltest.Start(t, there, "b")
	for range 3 {
		b.Append(t, slices.Repeat(texts(1), 1500)...)
		a.Append(t, texts(3)...)
		intact(t, here, a)
		a.Append(t) // the status alone
		intact(t, there, a)
	}
	a.Append(t, slices.Repeat(texts(1), 1500)...)
	a.Store = there
	a.Append(t) // by one who has inserted none of them
	intact(t, here, a)
}
