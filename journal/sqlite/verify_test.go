package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// apart writes each event in a commit of its own.
func apart(t *testing.T, d *journaltest.Driver, data []event.Data) {
	t.Helper()
	for _, each := range data {
		d.Append(t, each)
	}
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
			`UPDATE commits SET body = CAST(replace(CAST(body AS TEXT), 'quick', 'quack') AS BLOB) WHERE seq = 4 AND ` + ofRun}},
		{name: "a changed byte in the last event", seq: 8, do: []string{
			`UPDATE commits SET body = CAST(replace(CAST(body AS TEXT), 'completed', 'completes') AS BLOB) WHERE seq = 8 AND ` + ofRun}},
		{name: "bytes that are no event", seq: 5, do: []string{
			`UPDATE commits SET body = x'00027b7b' WHERE seq = 5 AND ` + ofRun}},
		{name: "bytes that are no commit", seq: 5, do: []string{
			`UPDATE commits SET body = x'00ff' WHERE seq = 5 AND ` + ofRun}},
		{name: "a removed event", seq: 3, do: []string{
			`DELETE FROM commits WHERE seq = 3 AND ` + ofRun}},
		{name: "a removed event, the rest renumbered", seq: 3, do: []string{
			`DELETE FROM commits WHERE seq = 3 AND ` + ofRun,
			`UPDATE commits SET seq = seq + 100 WHERE seq > 3 AND ` + ofRun,
			`UPDATE commits SET seq = seq - 101 WHERE seq > 100 AND ` + ofRun,
			`UPDATE heads SET seq = seq - 1 WHERE ` + ofRun}},
		{name: "a removed end", seq: 8, do: []string{
			`DELETE FROM commits WHERE seq = 8 AND ` + ofRun}},
		{name: "a removed end, the row adjusted", seq: 7, do: []string{
			`DELETE FROM commits WHERE seq = 8 AND ` + ofRun,
			`UPDATE heads SET seq = 7 WHERE ` + ofRun}},
		{name: "an event added after the end", seq: 9, do: []string{
			`INSERT INTO commits (rid, seq, events, kinds, body) SELECT rid, 9, 1, kinds, body FROM commits WHERE seq = 7 AND ` + ofRun}},
		{name: "an event put in between", seq: 4, do: []string{
			`UPDATE commits SET seq = seq + 100 WHERE seq >= 4 AND ` + ofRun,
			`UPDATE commits SET seq = seq - 99 WHERE seq > 100 AND ` + ofRun,
			`INSERT INTO commits (rid, seq, events, kinds, body) SELECT rid, 4, 1, kinds, body FROM commits WHERE seq = 3 AND ` + ofRun,
			`UPDATE heads SET seq = seq + 1 WHERE ` + ofRun}},
		{name: "two events exchanged", seq: 4, do: []string{
			`UPDATE commits SET seq = 100 WHERE seq = 4 AND ` + ofRun,
			`UPDATE commits SET seq = 4 WHERE seq = 5 AND ` + ofRun,
			`UPDATE commits SET seq = 5 WHERE seq = 100 AND ` + ofRun}},
		{name: "an event of another run", seq: 4, do: []string{
			`UPDATE commits SET body = (SELECT body FROM commits WHERE seq = 4 AND rid <> (SELECT rid FROM runs WHERE id = 'a')) WHERE seq = 4 AND ` + ofRun}},
		{name: "another type on the label", seq: 2, do: []string{
			`UPDATE commits SET body = CAST(x'0e' || 'input.recalled' || substr(body, 16) AS BLOB) WHERE seq = 2 AND ` + ofRun}},
		{name: "an ended run opened again", seq: 0, do: []string{
			`UPDATE runs SET state = 'running' WHERE id = 'a'`}},
		{name: "another outcome in the list", seq: 0, do: []string{
			`UPDATE runs SET outcome = '{"status":"completed","reason":"final_answer","ok":false}' WHERE id = 'a'`}},
		{name: "an outcome in the list that is none", seq: 0, do: []string{
			`UPDATE runs SET outcome = 'x' WHERE id = 'a'`}},
		{name: "no outcome in the list", seq: 0, do: []string{
			`UPDATE runs SET outcome = NULL WHERE id = 'a'`}},
		{name: "another reason in the list", seq: 0, do: []string{
			`UPDATE runs SET detail = 'maxCycles' WHERE id = 'a'`}},
		{name: "other cycles in the list", seq: 0, do: []string{
			`UPDATE heads SET cycles = cycles + 1 WHERE ` + ofRun}},
		{name: "another kind in the list", seq: 0, do: []string{
			`UPDATE runs SET kind = 'Goal' WHERE id = 'a'`}},
		{name: "another name in the list", seq: 0, do: []string{
			`UPDATE runs SET name = 'somebody' WHERE id = 'a'`}},
		{name: "another parent in the list", seq: 0, do: []string{
			`UPDATE runs SET parent = 'b' WHERE id = 'a'`}},
		{name: "a fork in the list that is none", seq: 1, do: []string{
			`UPDATE runs SET fork_of = 'b' WHERE id = 'a'`}},
		{name: "a fork in the list of nothing", seq: 0, do: []string{
			`UPDATE runs SET fork_of = 'nobody' WHERE id = 'a'`}},
		{name: "events that the row does not reach", seq: 1, do: []string{
			`UPDATE runs SET first = first + 4096 WHERE id = 'a'`, `UPDATE heads SET last = last + 4096 WHERE ` + ofRun}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			s := open(t, path)
			other := journaltest.Start(t, s, "b")
			apart(t, other, texts(6))
			d := journaltest.Start(t, s, "a")
			apart(t, d, texts(6))
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

// A run that has not ended has a row as well.
//
// rows: ALDO-63
func TestVerifyHoldsTheRowOfARunThatGoesOnAgainstItsEvents(t *testing.T) {
	until := journaltest.Epoch().Add(time.Minute)
	asked := event.ToolPendingApproval{CallID: "c", Tool: "pay", ExpiresAt: &until}
	for _, c := range []struct {
		name   string
		events []event.Data
		row    string
		sound  bool
	}{
		{"it goes on", nil, `state = 'running', detail = ''`, true},
		{"it goes on, with a detail", nil, `detail = 'retry'`, false},
		{"it has ended, and has not", nil, `state = 'ended', detail = 'final_answer'`, false},
		{"it has an outcome, and no end", nil, `outcome = '{"status":"completed"}'`, false},
		{"it is queued, and was begun", nil, `state = 'queued'`, false},
		{"it is parked, and is not", nil, `state = 'parked', detail = 'interrupted'`, false},
		{"it waits for a person", []event.Data{asked}, `state = 'waiting', detail = 'approval_required'`, true},
		{"it waits for a person whom it has not asked", nil, `state = 'waiting', detail = 'approval_required'`, false},
		{"it waits for a person who has answered", []event.Data{asked, event.ToolApprovalResolved{CallID: "c"}},
			`state = 'waiting', detail = 'approval_required'`, false},
		{"it waits for a person who was asked something else", []event.Data{asked, event.ToolApprovalResolved{CallID: "c", Digest: "other"}},
			`state = 'waiting', detail = 'approval_required'`, true},
		{"it waits for a person who was too late", []event.Data{asked, event.ToolApprovalResolved{CallID: "c", At: journaltest.Epoch().Add(time.Hour)}},
			`state = 'waiting', detail = 'approval_required'`, true},
		{"a child of it waits for a person", []event.Data{event.ChildWaiting{Child: "x", Waiting: true}},
			`state = 'waiting', detail = 'approval_required'`, true},
		{"a child of it waited for a person", []event.Data{event.ChildWaiting{Child: "x", Waiting: true}, event.ChildWaiting{Child: "x"}},
			`state = 'waiting', detail = 'approval_required'`, false},
		{"a child of it has parked", []event.Data{event.ChildWaiting{Child: "x", Waiting: true}, event.ChildParked{Child: "x"}},
			`state = 'waiting', detail = 'approval_required'`, false},
		{"a child of it waited, and has ended", []event.Data{event.ChildWaiting{Child: "x", Waiting: true}, event.ChildFinished{Child: "x"}},
			`state = 'waiting', detail = 'approval_required'`, false},
		{"two steps of it waited for a person, and one does", []event.Data{event.ChildWaiting{Child: "x", Waiting: true}, event.ChildWaiting{Child: "y", Waiting: true}, event.ChildWaiting{Child: "x"}},
			`state = 'waiting', detail = 'approval_required'`, true},
		{"it was written later than its last event", nil, `updated = updated + 3600000000000`, true},
		{"it was written after the clock was set back", nil, `updated = updated - 3600000000000`, true},
		{"it waits for another attempt", []event.Data{event.ModelRetrying{}}, `state = 'waiting', detail = 'retry'`, true},
		{"it waits for another attempt of an earlier cycle", []event.Data{event.ModelRetrying{}, event.CycleStart{Cycle: 3, MaxCycles: 9}},
			`state = 'waiting', detail = 'retry'`, false},
		{"it waits for something", nil, `state = 'waiting', detail = 'the weather'`, false},
		{"it is parked", []event.Data{event.RunParked{Reason: event.ParkInput}}, `state = 'parked'`, true},
		{"it is parked for another reason", []event.Data{event.RunParked{Reason: event.ParkInput}}, `detail = 'interrupted'`, false},
		{"it is parked, and goes on", []event.Data{event.RunParked{Reason: event.ParkInput}}, `state = 'running', detail = ''`, false},
		{"it is parked, and paused", []event.Data{event.RunParked{Reason: event.ParkInput}}, `state = 'paused'`, false},
		{"it is paused", []event.Data{event.RunParked{Reason: event.ParkPaused}}, `state = 'paused'`, true},
		{"it goes on again", []event.Data{event.RunParked{Reason: event.ParkInput}, event.RunResumed{}}, `state = 'running', detail = ''`, true},
		{"it is parked, and was resumed", []event.Data{event.RunParked{Reason: event.ParkInput}, event.RunResumed{}},
			`state = 'parked', detail = 'blocked_on_input'`, false},
		{"it is in another cycle", nil, `cycles = 1`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, s, d := begun(t)
			d.Append(t, append([]event.Data{event.CycleStart{Cycle: 2, MaxCycles: 9}}, c.events...)...)
			table := "runs"
			if strings.HasPrefix(c.row, "updated") || strings.HasPrefix(c.row, "cycles") {
				table = "heads"
			}
			tamper(t, path, `UPDATE `+table+` SET `+c.row+` WHERE rid = (SELECT rid FROM runs WHERE id = 'a')`)
			_, err := journal.Verify(t.Context(), s, "a", "")
			damage, ok := errors.AsType[*journal.CorruptError](err)
			if c.sound && err != nil || !c.sound && (!ok || damage.Seq != 0) {
				t.Errorf("verify says %v", err)
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

	tamper(t, path, `DELETE FROM commits WHERE seq > 4`, `UPDATE heads SET seq = 4, head = '`+early+`'`)
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
