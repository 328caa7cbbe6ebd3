package journaltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

func inboxContract() []contract {
	return []contract{
		{"commands are read in order until an append consumes them", sendAndConsume},
		{"a command whose sender has given it up is not taken", givenUp},
		{"consuming is part of the append", consumeIsAtomic},
		{"a driver consumes from its own inbox only", consumesOwn},
		{"the end of a run empties its inbox", endEmptiesInbox},
		{"a watcher wakes after a commit", watchWakes},
		{"an inbox watcher wakes for a command and not for an append", watchInboxWakes},
	}
}

func send(t *testing.T, s journal.Store, c journal.Command) journal.Command {
	t.Helper()
	id, err := s.Send(t.Context(), c)
	if err != nil {
		t.Fatalf("send %s to %s: %v", c.Kind, c.Run, err)
	}
	c.ID = id
	return c
}

func wantInbox(t *testing.T, s journal.Store, run string, want ...journal.Command) {
	t.Helper()
	got, err := s.Inbox(t.Context(), run)
	if err != nil {
		t.Fatalf("inbox of %q: %v", run, err)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inbox of %q (-want +got):\n%s", run, diff)
	}
}

func givenUp(t *testing.T, s journal.Store, _ *clock) {
	Start(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Send(ctx, journal.Command{Run: "a", Kind: journal.Pause, By: "me", At: Epoch()}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	wantInbox(t, s, "a")
}

func sendAndConsume(t *testing.T, s journal.Store, _ *clock) {
	a := Start(t, s, "a")
	Start(t, s, "b")
	first := send(t, s, journal.Command{Run: "a", Kind: journal.Input, By: "me", Text: "wait", At: Epoch()})
	other := send(t, s, journal.Command{Run: "b", Kind: journal.Cancel, By: "you", At: Epoch()})
	second := send(t, s, journal.Command{Run: "a", Kind: journal.Raise, Setting: "usd_per_run", Value: 7.5, Sealed: []byte{0, 1, 0xff}, At: Epoch()})
	wantInbox(t, s, "a", first, second)
	wantInbox(t, s, "", first, other, second)
	b := a.Batch(t, said(first.Text))
	b.Consumed = []int64{first.ID}
	if err := a.Write(t, b); err != nil {
		t.Fatal(err)
	}
	wantInbox(t, s, "a", second)
	wantInbox(t, s, "", other, second)
	if _, err := s.Send(t.Context(), journal.Command{Run: "none", Kind: journal.Pause}); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("send to a run that is not there: %v, want ErrNotFound", err)
	}
	if _, err := s.Inbox(t.Context(), "none"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("inbox of a run that is not there: %v, want ErrNotFound", err)
	}
}

func consumeIsAtomic(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	photo := llm.Media{MediaType: "image/png", Name: "photo.png", Data: []byte{0, 1, 0xff}}
	c := send(t, s, journal.Command{Run: "a", Kind: journal.Input, Text: "hello", Media: []llm.Media{photo}, At: Epoch()})
	stale := *d
	stale.Lease.Epoch++
	b := stale.Batch(t, said("hello"))
	b.Consumed = []int64{c.ID}
	if err := stale.Write(t, b); !errors.Is(err, journal.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	wantInbox(t, s, "a", c)
}

func endEmptiesInbox(t *testing.T, s journal.Store, _ *clock) {
	a, b := Start(t, s, "a"), Start(t, s, "b")
	send(t, s, journal.Command{Run: "a", Kind: journal.Input, Text: "too late"})
	left := send(t, s, journal.Command{Run: "b", Kind: journal.Input, Text: "in time"})
	a.End(t)
	wantInbox(t, s, "a")
	wantInbox(t, s, "b", left)
	wantInbox(t, s, "", left)
	b.Append(t, said("goes on"))
	wantInbox(t, s, "b", left)
}

func consumesOwn(t *testing.T, s journal.Store, _ *clock) {
	a := Start(t, s, "a")
	Start(t, s, "b")
	c := send(t, s, journal.Command{Run: "b", Kind: journal.Input, Text: "not yours", At: Epoch()})
	b := a.Batch(t, said("mine"))
	b.Consumed = []int64{c.ID}
	if err := a.Write(t, b); err != nil {
		t.Fatal(err)
	}
	wantInbox(t, s, "b", c)
}

// wakes receives until found returns true. A wake-up may be spurious, but none may be
// lost.
func wakes(t *testing.T, ch <-chan struct{}, found func() bool) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for {
		select {
		case _, open := <-ch:
			if !open {
				t.Fatal("the channel was closed while its context lives")
			}
			if found() {
				return
			}
		case <-limit.C:
			t.Fatal("no watcher was woken")
		}
	}
}

func watchWakes(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := s.Watch(ctx), s.Watch(ctx)
	for i := range 3 {
		d.Append(t, said("news"))
		for _, ch := range []<-chan struct{}{first, second} {
			wakes(t, ch, func() bool { return len(all(t, s, "a", 0)) == i+2 })
		}
	}
	send(t, s, journal.Command{Run: "a", Kind: journal.Pause})
	wakes(t, first, func() bool { return len(look(t, s, "a").Inbox) == 1 })
}

func watchInboxWakes(t *testing.T, s journal.Store, _ *clock) {
	d := Start(t, s, "a")
	Start(t, s, "b")
	inbox, any := s.WatchInbox(t.Context(), "a"), s.Watch(t.Context())
	send(t, s, journal.Command{Run: "a", Kind: journal.Pause})
	wakes(t, inbox, func() bool { return len(look(t, s, "a").Inbox) == 1 })
	// A store may signal a command again when it first polls for commands of other
	// processes, when it ends polling, and by a poll and a notification. This is a fixed
	// number; a store that does not distinguish runs exceeds it.
	again := 0
	for range 15 {
		d.Append(t, said("busy"))
		send(t, s, journal.Command{Run: "b", Kind: journal.Pause})
		wakes(t, any, func() bool { return true })
		select {
		case <-inbox:
			again++
		case <-time.After(50 * time.Millisecond):
		}
	}
	if again > 4 {
		t.Errorf("%d of 15 appends and commands to another run woke those who wait for commands to one", again)
	}
}
