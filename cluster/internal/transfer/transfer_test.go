package transfer_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/internal/transfer"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
)

var (
	server   *pgtest.Server
	noServer error
)

func TestMain(m *testing.M) {
	pgtest.Main(m, func(s *pgtest.Server, err error) { server, noServer = s, err })
}

func said(text string) event.Data { return event.InputReceived{Text: text, By: "ann"} }

// source returns a journal with a tree, a fork of it, a waiting run with a command, and
// contents shared by two runs.
func source(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	root := journaltest.Start(t, s, "root")
	row, err := s.Run(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	child := journaltest.StartBelow(t, s, "child", row)
	content := journal.NewBlob([]byte("what both name"))
	for _, d := range []*journaltest.Driver{root, child} {
		b := d.Batch(t, event.InputReceived{Text: "see", By: "ann", Media: []llm.Media{{Name: "a.txt", MediaType: "text/plain", Blob: content.Digest}}})
		b.Blobs = []journal.Blob{content}
		if err := d.Write(t, b); err != nil {
			t.Fatal(err)
		}
	}
	for range 700 {
		root.Append(t, said("one of many"))
	}
	child.End(t)
	b := root.Batch(t, event.RunParked{Reason: event.ParkInput})
	b.Release = true
	if err := root.Write(t, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), child.Lease); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), journal.Command{Run: "root", Kind: journal.Input, Text: "go on", By: "ann", At: journaltest.Epoch()}); err != nil {
		t.Fatal(err)
	}
	return s
}

// look reads everything that a reader can see of a run, except positions.
func look(t *testing.T, s journal.Store, id string) (journal.Run, []journal.Record, []journal.Command) {
	t.Helper()
	row, err := s.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	records, err := s.Records(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := s.Inbox(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		records[i].Pos = 0
	}
	return row, records, inbox
}

func same(t *testing.T, from, to journal.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		row, records, inbox := look(t, from, id)
		gotRow, gotRecords, gotInbox := look(t, to, id)
		if diff := cmp.Diff(row, gotRow); diff != "" {
			t.Errorf("row (-source +copy):\n%s", diff)
		}
		if diff := cmp.Diff(records, gotRecords); diff != "" {
			t.Errorf("events (-source +copy):\n%s", diff)
		}
		if diff := cmp.Diff(inbox, gotInbox, cmpopts.IgnoreFields(journal.Command{}, "ID")); diff != "" {
			t.Errorf("commands (-source +copy):\n%s", diff)
		}
		if v, err := journal.Verify(t.Context(), to, id, row.Head); err != nil || v.Events != row.Seq {
			t.Errorf("verify: %+v, %v", v, err)
		}
	}
}

func target(t *testing.T, schema string) *postgres.Store {
	t.Helper()
	pgtest.Skip(t, noServer)
	s, err := postgres.Open(t.Context(), server.URL()+"?schema="+schema, postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestWholeTreesAreCopiedOnce(t *testing.T) {
	from, to := source(t), target(t, "once")
	done, err := transfer.Copy(t.Context(), from, to, "copier")
	want := transfer.Copied{Trees: 1, Runs: 2, Events: 706, Blobs: 2, Commands: 1}
	if err != nil || done != want {
		t.Fatalf("got %+v, %v; want %+v", done, err, want)
	}
	same(t, from, to, "root", "child")
	done, err = transfer.Copy(t.Context(), from, to, "copier")
	if err != nil || done != (transfer.Copied{Present: 1}) {
		t.Errorf("the second time: %+v, %v", done, err)
	}
	same(t, from, to, "root", "child")
	// The copied run continues; another copy then leaves it alone.
	lease, err := to.Acquire(t.Context(), "root", "driver", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	row, err := to.Run(t.Context(), "root")
	if err != nil {
		t.Fatal(err)
	}
	d := &journaltest.Driver{Store: to, Lease: lease, Seq: row.Seq, Head: row.Head}
	d.Append(t, said("goes on"))
	if done, err := transfer.Copy(t.Context(), from, to, "copier"); err != nil || done.Present != 1 {
		t.Errorf("after it went on: %+v, %v", done, err)
	}
}

// cutting fails after a number of writes, like a process that is killed.
type cutting struct {
	journal.Store
	left int
}

var errCut = errors.New("cut")

func (s *cutting) Append(ctx context.Context, b journal.Batch) (int64, error) {
	if s.left--; s.left < 0 {
		return 0, errCut
	}
	return s.Store.Append(ctx, b)
}

func TestACutCopyIsMadeAgain(t *testing.T) {
	from, to := source(t), target(t, "cut")
	for cut := range 3 {
		_, err := transfer.Copy(t.Context(), from, &cutting{Store: to, left: cut}, "copier")
		if !errors.Is(err, errCut) {
			t.Fatalf("cut after %d appends: %v", cut, err)
		}
		row, err := to.Run(t.Context(), "root")
		if err != nil || row.State != journal.Paused {
			t.Errorf("the cut root is %s, %v", row.State, err)
		}
		for _, id := range []string{"root", "child"} {
			if row, err := to.Run(t.Context(), id); err == nil && row.Owner != "" {
				if _, err := to.Acquire(t.Context(), id, "gone", row.Owner, time.Nanosecond); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if done, err := transfer.Copy(t.Context(), from, to, "copier"); err != nil || done.Trees != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	same(t, from, to, "root", "child")
}

func TestADrivenRunAndAnotherOfItsIdAreRefused(t *testing.T) {
	from, to := source(t), target(t, "refused")
	lease, err := from.Acquire(t.Context(), "root", "driver", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Copy(t.Context(), from, to, "copier"); !errors.Is(err, transfer.ErrDriven) {
		t.Errorf("driven: %v", err)
	}
	if err := from.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	other := journaltest.Start(t, to, "root")
	other.Append(t, said("of another journal"))
	other.End(t)
	if _, err := transfer.Copy(t.Context(), from, to, "copier"); !errors.Is(err, transfer.ErrDiffers) {
		t.Errorf("another run: %v", err)
	}
	if row, err := to.Run(t.Context(), "root"); err != nil || row.Seq != 3 {
		t.Errorf("the other run: %+v, %v", row, err)
	}
}
