package drive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// reading counts the events that are read from a store; plain hides that the store keeps
// snapshots.
type reading struct {
	*sqlite.Store
	events int
}

func (r *reading) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := r.Store.Records(ctx, run, after, limit)
	r.events += len(records)
	return records, err
}

type plain struct{ journal.Store }

// longRun runs an agent of more than a thousand events, and returns its row.
func longRun(t *testing.T, store journal.Store) journal.Run {
	t.Helper()
	echo := pawl.Tool("echo", "Say it again.", func(_ context.Context, p struct{ Text string }) (string, error) { return p.Text, nil })
	var turns []scripted.Turn
	for i := range 115 {
		turns = append(turns, scripted.Turn{ToolCalls: []scripted.Call{{Name: "echo", Arguments: json.RawMessage(fmt.Sprintf(`{"Text":"turn %d"}`, i))}}})
	}
	agent := pawl.Agent{
		Tools: []tool.Tool{echo}, Limits: budget.Limits{MaxCycles: 1000, MaxToolCalls: 1000, MaxModelTurns: 1000},
		Model: pawl.Target{Name: "scripted/long", Client: scripted.New("long", append(turns, scripted.Turn{Text: "It is done."})...)},
	}
	run, err := agent.Start(t.Context(), "Say something.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	row, err := store.Run(t.Context(), run.ID())
	if err != nil || row.Seq < 1100 {
		t.Fatal(row.Seq, err)
	}
	return row
}

// viewed returns the view of a run, and fails if it is not the one of all events.
func viewed(t *testing.T, store *reading, run string) (read int) {
	t.Helper()
	var whole, v drive.Viewed
	if err := whole.Read(t.Context(), plain{store}, run); err != nil {
		t.Fatal(err)
	}
	var digest, folded drive.Digested
	if err := errors.Join(digest.Read(t.Context(), store, run), folded.Read(t.Context(), plain{store}, run)); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(folded.Started, digest.Started) || !bytes.Equal(folded.Snapshot(), digest.Snapshot()) {
		t.Error("the digest from a snapshot is another")
	}
	store.events = 0
	if err := v.Read(t.Context(), store, run); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(whole.Snapshot()), string(v.Snapshot())); diff != "" || v.Seq != whole.Seq || v.Pos != whole.Pos || v.Ended != whole.Ended {
		t.Errorf("the view from a snapshot is another (%d, %d):\n%s", whole.Seq, v.Seq, diff)
	}
	return store.events
}

func state(t *testing.T, store journal.Store, run string) drive.RunState {
	t.Helper()
	snapshots := drive.Past{Store: store, Machines: versions.Make}.Snapshots()
	s, err := snapshots.State(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestALongRunIsShownFromItsSnapshots(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	store := &reading{Store: s}
	row := longRun(t, store)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if k, err := s.Kept(t.Context(), row.ID, "view"); err != nil || time.Now().After(end) {
			t.Fatal("there is no snapshot of the run's end", err)
		} else if k.Seq == row.Seq {
			break
		}
	}
	if n := viewed(t, store, row.ID); n != 1 {
		t.Errorf("%d events are read of a run with a snapshot of its end", n)
	}
	folded := state(t, plain{store}, row.ID)
	store.events = 0
	if diff := cmp.Diff(folded, state(t, store, row.ID)); diff != "" || store.events != 0 {
		t.Errorf("the state from a snapshot, for which %d events are read (-fold +snapshot):\n%s", store.events, diff)
	}

	// A snapshot of an earlier event saves the events before it.
	var early view.View
	last := journal.Record{}
	records, err := s.Records(t.Context(), row.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, last = range records {
		e, err := event.Decode(last.Body)
		if err != nil {
			t.Fatal(err)
		}
		early.Add(e)
	}
	good := journal.Snapshot{Version: view.SnapshotVersion, Seq: last.Seq, Head: event.Hash(last.Body), Body: early.Snapshot()}
	for name, c := range map[string]struct {
		change func(*journal.Snapshot)
		used   bool
	}{
		"of an earlier event":       {func(*journal.Snapshot) {}, true},
		"of another version":        {func(k *journal.Snapshot) { k.Version += "x" }, false},
		"of other events":           {func(k *journal.Snapshot) { k.Head = row.Head }, false},
		"of an event that is none":  {func(k *journal.Snapshot) { k.Seq = row.Seq + 1 }, false},
		"cut short":                 {func(k *journal.Snapshot) { k.Body = k.Body[:len(k.Body)/2] }, false},
		"with bytes that are none":  {func(k *journal.Snapshot) { k.Body = []byte("none") }, false},
		"without bytes, but events": {func(k *journal.Snapshot) { k.Body = []byte{} }, false},
	} {
		k := good
		c.change(&k)
		if err := s.Keep(t.Context(), row.ID, "view", k); err != nil {
			t.Fatal(err)
		}
		if n := viewed(t, store, row.ID); (n < int(row.Seq)) != c.used {
			t.Errorf("a snapshot %s: %d of %d events are read", name, n, row.Seq)
		}
	}
	k, err := s.Kept(t.Context(), row.ID, "state")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*journal.Snapshot){
		func(k *journal.Snapshot) { k.Version += "x" }, func(k *journal.Snapshot) { k.Head += "x" }, func(k *journal.Snapshot) { k.Seq-- },
		func(k *journal.Snapshot) { k.Body = []byte("none") },
	} {
		other := k
		change(&other)
		if err := s.Keep(t.Context(), row.ID, "state", other); err != nil {
			t.Fatal(err)
		}
		store.events = 0
		if diff := cmp.Diff(folded, state(t, store, row.ID)); diff != "" || store.events < int(row.Seq) {
			t.Errorf("with a snapshot that does not fit %d events are read (-fold +snapshot):\n%s", store.events, diff)
		}
	}
}

// older is a store whose rows were written by an older version, until they are filled.
type older struct {
	*reading
	filled map[string]*journal.Waits
}

func (o older) Run(ctx context.Context, id string) (journal.Run, error) {
	row, err := o.reading.Run(ctx, id)
	row.Waits = o.filled[id]
	return row, err
}

func (o older) FillWaits(_ context.Context, row journal.Run, w *journal.Waits) error {
	o.filled[row.ID] = w
	return nil
}

func TestARowOfAnOlderVersionIsFoldedOnce(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	deploy := pawl.Tool("deploy", "Deploy.", func(context.Context, struct{}) (string, error) { return "deployed", nil })
	agent := pawl.Agent{
		Tools: []tool.Tool{deploy}, Approvals: pawl.Approvals{Tools: []string{"deploy"}},
		Model: pawl.Target{Name: "scripted/asks", Client: scripted.New("asks", scripted.Turn{ToolCalls: []scripted.Call{{Name: "deploy", Arguments: json.RawMessage(`{}`)}}})},
	}
	store := older{&reading{Store: s}, map[string]*journal.Waits{}}
	past := drive.Past{Store: store, Machines: versions.Make}
	for range 2 {
		run, err := agent.Start(t.Context(), "Ship it.", pawl.Options{Journal: s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		written, err := s.Run(t.Context(), run.ID())
		if err != nil || len(written.Waits.Questions) != 1 {
			t.Fatal(written, err)
		}
		for i := range 3 {
			row, err := store.Run(t.Context(), run.ID())
			if err != nil {
				t.Fatal(err)
			}
			store.events = 0
			w, err := past.Waits(t.Context(), row)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(written.Waits, w); diff != "" || (store.events > 0) != (i == 0) {
				t.Errorf("the %d. time %d events are read (-written +folded):\n%s", i+1, store.events, diff)
			}
		}
	}
}
