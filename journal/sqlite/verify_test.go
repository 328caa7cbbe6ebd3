package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
)

// tamper opens a run's file behind the store's back.
func tamper(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		r, err := db.Exec(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if n, _ := r.RowsAffected(); n == 0 && !strings.HasPrefix(s, "CREATE") && !strings.HasPrefix(s, "DROP") {
			t.Fatalf("%s: changed nothing", s)
		}
	}
}

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// begun makes a journal with a run that is being driven.
func begun(t testing.TB) (path string, s *sqlite.Store, d *journaltest.Driver) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	s = open(t, path)
	return path, s, journaltest.Start(t, s, "a")
}

func texts(n int) []event.Data {
	data := make([]event.Data, n)
	for i := range data {
		data[i] = event.InputReceived{Text: "the quick brown fox", By: "somebody"}
	}
	return data
}

// rows: ALDO-63
func TestVerifyFindsTheFirstEventThatIsNotWhatWasWritten(t *testing.T) {
	const ofRun = `rid = (SELECT rid FROM runs WHERE id = 'a')`
	for _, c := range []struct {
		name  string
		do    []string
		seq   int64
		state journal.State
	}{
		{name: "a changed byte", seq: 4, do: []string{
			`UPDATE log SET body = CAST(replace(CAST(body AS TEXT), 'quick', 'quack') AS BLOB) WHERE seq = 4 AND ` + ofRun}},
		{name: "a changed byte in the last event", seq: 8, do: []string{
			`UPDATE log SET body = CAST(replace(CAST(body AS TEXT), 'completed', 'completes') AS BLOB) WHERE seq = 8 AND ` + ofRun}},
		{name: "bytes that are no event", seq: 5, do: []string{
			`UPDATE log SET body = x'00ff' WHERE seq = 5 AND ` + ofRun}},
		{name: "a removed event", seq: 3, do: []string{
			`DELETE FROM log WHERE seq = 3 AND ` + ofRun}},
		{name: "a removed event, the rest renumbered", seq: 3, do: []string{
			`DELETE FROM log WHERE seq = 3 AND ` + ofRun,
			`UPDATE log SET seq = seq + 100 WHERE seq > 3 AND ` + ofRun,
			`UPDATE log SET seq = seq - 101 WHERE seq > 100 AND ` + ofRun,
			`UPDATE runs SET seq = seq - 1 WHERE id = 'a'`}},
		{name: "a removed end", seq: 8, do: []string{
			`DELETE FROM log WHERE seq = 8 AND ` + ofRun}},
		{name: "a removed end, the row adjusted", seq: 7, do: []string{
			`DELETE FROM log WHERE seq = 8 AND ` + ofRun,
			`UPDATE runs SET seq = 7 WHERE id = 'a'`}},
		{name: "an event added after the end", seq: 9, do: []string{
			`INSERT INTO log (rid, seq, type, body) SELECT rid, 9, type, body FROM log WHERE seq = 7 AND ` + ofRun}},
		{name: "an event put in between", seq: 4, do: []string{
			`UPDATE log SET seq = seq + 100 WHERE seq >= 4 AND ` + ofRun,
			`UPDATE log SET seq = seq - 99 WHERE seq > 100 AND ` + ofRun,
			`INSERT INTO log (rid, seq, type, body) SELECT rid, 4, type, body FROM log WHERE seq = 3 AND ` + ofRun,
			`UPDATE runs SET seq = seq + 1 WHERE id = 'a'`}},
		{name: "two events exchanged", seq: 4, do: []string{
			`UPDATE log SET seq = 100 WHERE seq = 4 AND ` + ofRun,
			`UPDATE log SET seq = 4 WHERE seq = 5 AND ` + ofRun,
			`UPDATE log SET seq = 5 WHERE seq = 100 AND ` + ofRun}},
		{name: "an event of another run", seq: 4, do: []string{
			`UPDATE log SET body = (SELECT body FROM log WHERE seq = 4 AND rid <> (SELECT rid FROM runs WHERE id = 'a')) WHERE seq = 4 AND ` + ofRun}},
		{name: "another type on the label", seq: 2, do: []string{
			`UPDATE log SET type = 'nudge' WHERE seq = 2 AND ` + ofRun}},
		{name: "an ended run opened again", seq: 0, do: []string{
			`UPDATE runs SET state = 'running' WHERE id = 'a'`}},
		{name: "another outcome in the list", seq: 0, do: []string{
			`UPDATE runs SET outcome = '{"status":"completed","reason":"final_answer","ok":false}' WHERE id = 'a'`}},
		{name: "an outcome in the list that is none", seq: 0, do: []string{
			`UPDATE runs SET outcome = 'x' WHERE id = 'a'`}},
		{name: "another name in the list", seq: 0, do: []string{
			`UPDATE runs SET name = 'somebody' WHERE id = 'a'`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s := open(t, path)
			other := journaltest.Start(t, s, "b")
			other.Append(t, texts(6)...)
			d := journaltest.Start(t, s, "a")
			d.Append(t, texts(6)...)
			d.End(t)
			got, err := journal.Verify(t.Context(), s, "a", d.Head)
			if want := (journal.Verified{Run: "a", Events: 8, Head: d.Head, HeadSeq: 8}); err != nil || got != want {
				t.Fatalf("before: %+v, %v; want %+v", got, err, want)
			}
			tamper(t, path, c.do...)
			_, err = journal.Verify(t.Context(), s, "a", "")
			damage, ok := errors.AsType[*journal.CorruptError](err)
			if !ok || !errors.Is(err, journal.ErrCorrupt) {
				t.Fatalf("got %v, not a CorruptError", err)
			}
			if damage.Seq != c.seq {
				t.Errorf("found at event %d, want %d: %v", damage.Seq, c.seq, err)
			}
			if _, err := journal.Verify(t.Context(), s, "b", ""); err != nil {
				t.Errorf("the run beside it: %v", err)
			}
		})
	}
}

func TestVerifyFindsARewrittenTailOnlyByAHeadFromElsewhere(t *testing.T) {
	path, s, d := begun(t)
	d.Append(t, texts(3)...)
	early, fork := d.Head, *d
	d.Append(t, texts(2)...)
	honest := d.Head

	tamper(t, path, `DELETE FROM log WHERE seq > 4`, `UPDATE runs SET seq = 4, head = '`+early+`'`)
	fork.Append(t, event.InputReceived{Text: "I never said that", By: "somebody"})

	if _, err := journal.Verify(t.Context(), s, "a", ""); err != nil {
		t.Errorf("a consistent chain without a head: %v", err)
	}
	if got, err := journal.Verify(t.Context(), s, "a", early); err != nil || got.HeadSeq != 4 {
		t.Errorf("a head from before the change: %+v, %v", got, err)
	}
	_, err := journal.Verify(t.Context(), s, "a", honest)
	damage, ok := errors.AsType[*journal.CorruptError](err)
	if !ok || damage.Want != honest || damage.Got != fork.Head {
		t.Errorf("got %v, want a CorruptError with both heads", err)
	}
}

func TestVerifyTellsAbsenceFromDamage(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "journal.db"))
	_, err := journal.Verify(t.Context(), s, "nobody", "")
	if !errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("got %v, want ErrNotFound alone", err)
	}
}

// rows: ALDO-63
func TestVerifyFindsContentThatIsMissingOrAltered(t *testing.T) {
	for _, c := range []struct{ name, do, what string }{
		{"missing", `DELETE FROM blobs WHERE digest = ?`, "the content that it refers to is missing"},
		{"altered", `UPDATE blobs SET bytes = CAST('the whole outpuT' AS BLOB) WHERE digest = ?`, "the content that it refers to was altered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s := open(t, path)
			blob := journal.NewBlob([]byte("the whole output"))
			d := journaltest.Start(t, s, "a")
			for range 2 { // the second refers to what is stored already
				b := d.Batch(t, event.ToolResult{CallID: "c", Tool: "t", Output: "the", Blob: blob.Digest})
				b.Blobs = []journal.Blob{blob}
				if err := d.Write(t, b); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := journal.Verify(t.Context(), s, "a", ""); err != nil || got.Blobs != 1 {
				t.Fatalf("before: %+v, %v", got, err)
			}
			tamper(t, path, strings.ReplaceAll(c.do, "?", "'"+blob.Digest+"'"))
			_, err := journal.Verify(t.Context(), s, "a", "")
			damage, ok := errors.AsType[*journal.CorruptError](err)
			if !ok || damage.Seq != 2 || damage.What != c.what || damage.Want != blob.Digest {
				t.Errorf("got %v", err)
			}
		})
	}
}
