package journaltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

func noteContract() []contract {
	return []contract{
		{"of a key there is one note, until it expires", noteOnce},
		{"one of many who note a key at once is the first", noteRace},
		{"notes without a key are read newest first", notesInOrder},
	}
}

func note(t *testing.T, s journal.Store, n journal.Note, wantFresh bool) journal.Note {
	t.Helper()
	kept, fresh, err := s.Note(t.Context(), n)
	if err != nil || fresh != wantFresh {
		t.Fatalf("note %q: fresh %t, %v", n.Key, fresh, err)
	}
	return kept
}

func noteOnce(t *testing.T, s journal.Store, _ *clock) {
	n := journal.Note{Key: "k", At: Epoch(), Expires: Epoch().Add(time.Hour), Body: json.RawMessage(`{"a":1}`)}
	first := note(t, s, n, true)
	second := n
	second.Body = json.RawMessage(`{"b":2}`)
	if diff := cmp.Diff(first, note(t, s, second, false)); diff != "" {
		t.Errorf("the second is given (-first +given):\n%s", diff)
	}
	if err := s.Amend(t.Context(), first.ID, []byte(`{"c":3}`)); err != nil {
		t.Fatal(err)
	}
	if got := note(t, s, second, false); string(got.Body) != `{"c":3}` {
		t.Errorf("amended it is %s", got.Body)
	}
	second.At = n.Expires.Add(1)
	if got := note(t, s, second, true); got.ID == first.ID {
		t.Errorf("after its time it is %+v", got)
	}
	if err := s.Amend(t.Context(), first.ID, []byte(`{}`)); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an expired note is amended: %v", err)
	}
	last := note(t, s, journal.Note{Key: "other", At: Epoch(), Body: json.RawMessage(`{}`)}, true)
	if err := s.Amend(t.Context(), last.ID, nil); err != nil {
		t.Fatal(err)
	}
	note(t, s, journal.Note{Key: "other", At: Epoch(), Body: json.RawMessage(`{}`)}, true)
}

func noteRace(t *testing.T, s journal.Store, _ *clock) {
	var fresh atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, is, err := s.Note(t.Context(), journal.Note{Key: "k", At: Epoch(), Body: json.RawMessage(fmt.Sprint(i))})
			if err != nil {
				t.Error(err)
			}
			if is {
				fresh.Add(1)
			}
		})
	}
	all.Wait()
	if fresh.Load() != 1 {
		t.Errorf("%d are the first", fresh.Load())
	}
}

func notesInOrder(t *testing.T, s journal.Store, _ *clock) {
	var want []journal.Note
	for i := range 5 {
		n := note(t, s, journal.Note{At: Epoch(), Body: json.RawMessage(fmt.Sprint(i))}, true)
		note(t, s, journal.Note{Key: fmt.Sprint(i), At: Epoch(), Body: json.RawMessage(`{}`)}, true)
		want = append([]journal.Note{n}, want...)
	}
	for before, want := range map[int64][]journal.Note{0: want[:3], want[1].ID: want[2:5], want[4].ID: nil} {
		got, err := s.Notes(t.Context(), before, 3)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("before %d: %v (-want +got):\n%s", before, err, diff)
		}
	}
}
