package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// counted is a store that counts what is read of it, and fails while it is broken.
type counted struct {
	journal.Store
	reads, tails atomic.Int64
	broken       atomic.Pointer[error]
}

func newCounted() *counted { return &counted{Store: memory.New(nil)} }

func (c *counted) failure() error {
	if err := c.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *counted) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	c.reads.Add(1)
	if err := c.failure(); err != nil {
		return nil, err
	}
	return c.Store.Records(ctx, run, after, limit)
}

func (c *counted) Tree(ctx context.Context, root string, after int64, limit int) ([]journal.Record, error) {
	c.reads.Add(1)
	if err := c.failure(); err != nil {
		return nil, err
	}
	return c.Store.Tree(ctx, root, after, limit)
}

func (c *counted) Tail(ctx context.Context, after int64, limit int) ([]journal.Record, error) {
	c.tails.Add(1)
	if err := c.failure(); err != nil {
		return nil, err
	}
	return c.Store.Tail(ctx, after, limit)
}

// subscribe listens until the test ends.
func subscribe(t *testing.T, f *follow.Follower, q follow.Query) *follow.Subscription {
	t.Helper()
	s, err := f.Subscribe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// all reads what is there.
func all(t *testing.T, s *follow.Subscription) (out []follow.Event) {
	t.Helper()
	for {
		events, err := s.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return out
		}
		out = append(out, events...)
	}
}

// next waits for events.
func next(t *testing.T, s *follow.Subscription) []follow.Event {
	t.Helper()
	for {
		if got := all(t, s); len(got) > 0 {
			return got
		}
		select {
		case <-s.Wake():
		case <-time.After(time.Minute):
			t.Fatal("nobody is woken")
		}
	}
}

// lines are events as clients see them.
func lines(t *testing.T, events []follow.Event) (out []string) {
	t.Helper()
	for i := range events {
		b, err := events[i].JSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

// stored are records as clients see them.
func stored(t *testing.T, records []journal.Record, err error) (out []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		e.Pos = r.Pos
		b, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func said(i int) event.Data { return event.InputReceived{Text: fmt.Sprint(i)} }

// However many listen, and however busy others are, the journal is read once.
func TestTheJournalIsReadOnceForAllWhoListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		f := follow.New(store)
		a, busy := journaltest.Start(t, store, "a"), journaltest.Start(t, store, "busy")
		var subs []*follow.Subscription
		for range 10 {
			subs = append(subs, subscribe(t, f, follow.Query{Run: "a"}))
		}
		got := make([][]follow.Event, len(subs))
		look := func() {
			time.Sleep(time.Second)
			for i, s := range subs {
				got[i] = append(got[i], all(t, s)...)
			}
		}
		look()
		store.reads.Store(0)
		store.tails.Store(0)
		for i := range 60 {
			for j := range 20 {
				busy.Append(t, said(j))
			}
			a.Append(t, said(i))
			look()
		}
		if n := store.reads.Load(); n != 0 {
			t.Errorf("%d reads of the run beside those of the journal's end", n)
		}
		if n := store.tails.Load(); n < 60 || n > 130 {
			t.Errorf("the journal's end was read %d times for 60 bursts", n)
		}
		records, err := store.Store.Records(t.Context(), "a", 0, 0)
		want := stored(t, records, err)
		for i := range got {
			if diff := cmp.Diff(want, lines(t, got[i])); diff != "" {
				t.Errorf("reader %d (-journal +got):\n%s", i, diff)
			}
		}
	})
}

func TestAReaderIsWokenForWhatAnybodyCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		a := journaltest.Start(t, store, "a")
		s := subscribe(t, follow.New(store), follow.Query{Run: "a"})
		all(t, s)
		for i := range 3 {
			a.Append(t, said(i))
			if got := next(t, s); len(got) != 1 || got[0].Seq != int64(i+2) {
				t.Fatalf("%d events after event %d", len(got), i+2)
			}
		}
	})
}

// A tree is followed in the order of pos, from any place, and a run in it with what is
// below it.
func TestTreeIsFollowedFromAnyPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		f := follow.New(store)
		root := journaltest.Start(t, store, "root")
		early := subscribe(t, f, follow.Query{Run: "root", Tree: true})
		all(t, early)
		row := journal.Run{ID: "root"}
		one, other := journaltest.StartBelow(t, store, "one", row), journaltest.StartBelow(t, store, "other", row)
		middle := subscribe(t, f, follow.Query{Run: "one", Tree: true})
		leaf := journaltest.StartBelow(t, store, "leaf", journal.Run{ID: "one", Root: "root", Depth: 2})
		stranger := journaltest.Start(t, store, "stranger")
		for i := range 300 {
			for _, d := range []*journaltest.Driver{leaf, root, stranger, other, one} {
				d.Append(t, said(i))
			}
		}
		time.Sleep(time.Second)
		records, err := store.Tree(t.Context(), "root", 0, 0)
		want := stored(t, records, err)
		if diff := cmp.Diff(want[1:], lines(t, all(t, early))); diff != "" {
			t.Errorf("the tree (-journal +got):\n%s", diff)
		}
		below := slices.DeleteFunc(slices.Clone(records), func(r journal.Record) bool { return r.Run != "one" && r.Run != "leaf" })
		if diff := cmp.Diff(stored(t, below, nil), lines(t, all(t, middle))); diff != "" {
			t.Errorf("the part (-journal +got):\n%s", diff)
		}
		again := subscribe(t, f, follow.Query{Run: "one", Tree: true})
		if diff := cmp.Diff(stored(t, below, nil), lines(t, all(t, again))); diff != "" {
			t.Errorf("the part, from the journal (-journal +got):\n%s", diff)
		}
		for _, i := range []int{0, 1, 700, len(records) - 2} {
			late := subscribe(t, f, follow.Query{Run: "root", Tree: true, After: records[i].Pos})
			if diff := cmp.Diff(want[i+1:], lines(t, all(t, late))); diff != "" {
				t.Errorf("after event %d (-journal +got):\n%s", i, diff)
			}
		}
	})
}

func TestForkIsFollowedWithSharedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		f := follow.New(store)
		a := journaltest.Start(t, store, "a")
		for i := range 9 {
			a.Append(t, said(i))
		}
		fork := journaltest.Fork(t, store, "fork", "a", 5)
		var subs []*follow.Subscription
		for _, tree := range []bool{false, true} {
			subs = append(subs, subscribe(t, f, follow.Query{Run: "fork", Tree: tree}))
		}
		a.Append(t, said(9))
		fork.Append(t, said(10))
		records, err := store.Records(t.Context(), "fork", 0, 0)
		for _, s := range subs {
			time.Sleep(time.Second)
			if diff := cmp.Diff(stored(t, records, err), lines(t, all(t, s))); diff != "" {
				t.Errorf("-journal +got:\n%s", diff)
			}
		}
	})
}

// A reader that stands still for as long as it likes has nothing kept for it beyond
// a bound, and finds the rest in the journal.
func TestWhoLagsReadsFromTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		f := follow.New(store)
		a := journaltest.Start(t, store, "a")
		slow, quick := subscribe(t, f, follow.Query{Run: "a"}), subscribe(t, f, follow.Query{Run: "a", Tree: true})
		all(t, slow)
		heard := len(all(t, quick))
		large := make([]byte, 1<<20)
		for i := range large {
			large[i] = 'x'
		}
		for range 20 {
			a.Append(t, event.InputReceived{Text: string(large)})
			time.Sleep(time.Second)
			heard += len(all(t, quick))
		}
		store.reads.Store(0)
		if got := all(t, slow); len(got) != 20 || heard != 21 {
			t.Errorf("the slow reader got %d events, the quick one %d", len(got), heard)
		}
		if store.reads.Load() == 0 {
			t.Error("20 MiB were kept for a reader that stood still")
		}
		a.Append(t, said(1))
		if got := next(t, slow); len(got) != 1 || got[0].Seq != 22 {
			t.Errorf("afterwards it gets %d events", len(got))
		}
	})
}

// If the journal cannot be read each reader gets the error, and continues once it can.
func TestUnreadableJournalFailsAllSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		a := journaltest.Start(t, store, "a")
		s := subscribe(t, follow.New(store), follow.Query{Run: "a"})
		all(t, s)
		broken := errors.New("the disk is gone")
		store.broken.Store(&broken)
		a.Append(t, said(1))
		<-s.Wake()
		if _, err := s.Poll(t.Context()); !errors.Is(err, broken) {
			t.Errorf("a read gives %v", err)
		}
		store.broken.Store(nil)
		if got := all(t, s); len(got) != 1 {
			t.Errorf("%d events once it can be read", len(got))
		}
		a.Append(t, said(2))
		if got := next(t, s); len(got) != 1 || got[0].Seq != 3 {
			t.Errorf("%d events after that", len(got))
		}
	})
}

// Nothing is read without subscriptions, and an unknown run is refused.
func TestFollowerReadsNothingWithoutSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		f := follow.New(store)
		a := journaltest.Start(t, store, "a")
		if _, err := f.Subscribe(t.Context(), follow.Query{Run: "nobody"}); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("a run that is not there: %v", err)
		}
		for range 2 {
			s := subscribe(t, f, follow.Query{Run: "a"})
			if got := all(t, s); int64(len(got)) != a.Seq {
				t.Errorf("%d events of %d", len(got), a.Seq)
			}
			s.Close()
			time.Sleep(time.Second)
			store.tails.Store(0)
			a.Append(t, said(1))
			time.Sleep(time.Second)
			if n := store.tails.Load(); n > 0 {
				t.Errorf("%d reads for nobody", n)
			}
			if _, err := s.Poll(t.Context()); err == nil {
				t.Error("a closed subscription is read")
			}
		}
	})
}
