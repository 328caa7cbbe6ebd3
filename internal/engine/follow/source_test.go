package follow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// driven is a run that this process drives.
type driven struct {
	*journaltest.Driver
	source *follow.Source
	f      *follow.Follower
	root   string
	at     follow.Place
}

// commit writes events, and returns what publishes them.
func (d *driven) commit(t *testing.T, data ...event.Data) (publish func()) {
	t.Helper()
	b := d.Batch(t, data...)
	if d.source != nil {
		d.source.Forget() // what was said is whole
	}
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	var events []follow.Event
	for i, r := range b.Records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		e.Pos = d.First + int64(i)
		events = append(events, follow.Durable(*e, len(r.Body)))
		d.at = follow.Place{Seq: e.Seq, Pos: e.Pos, First: true}
	}
	first := d.First
	return func() {
		d.f.Publish(d.root, first, len(events), func(i int) follow.Event { return events[i] })
	}
}

// say says a word of an attempt.
func (d *driven) say(word string) {
	d.source.Say(event.Event{Run: d.Lease.Run, Data: event.Text{Text: word, Attempt: 1}}, d.at)
	d.at.First = false
}

// What this process commits is handed out without a look at the journal, also where
// it is published in another order than that in which it was committed.
func TestWhatIsCommittedHereIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		f := follow.New(store)
		var runs []*driven
		for _, id := range []string{"a", "b", "c"} {
			runs = append(runs, &driven{Driver: journaltest.Start(t, store, id), f: f, root: id})
		}
		s := subscribe(t, f, follow.Query{Run: "a"})
		all(t, s)
		synctest.Wait()
		store.reads.Store(0)
		store.tails.Store(0)
		var publish []func()
		for i := range 3 {
			for _, d := range runs {
				publish = append(publish, d.commit(t, said(i), said(i)))
			}
		}
		slices.Reverse(publish)
		for _, p := range publish {
			p()
		}
		if got := all(t, s); len(got) != 6 || store.reads.Load()+store.tails.Load() > 0 {
			t.Errorf("%d events after %d reads", len(got), store.reads.Load()+store.tails.Load())
		}
	})
}

// screen shows runs as a client does, and fails where that would mislead.
type screen struct {
	t     *testing.T
	pos   int64
	shown map[string]string
	lines []string
}

func (s *screen) take(events []follow.Event) {
	for i := range events {
		e := &events[i]
		switch d := e.Data.(type) {
		case event.Text:
			if s.shown[e.Run] += d.Text; !strings.HasPrefix("one two three four five ", s.shown[e.Run]) {
				s.t.Errorf("run %s is shown as saying %q", e.Run, s.shown[e.Run])
			}
			continue
		case event.TextReset:
			s.shown[e.Run] = ""
			continue
		}
		if e.Pos <= s.pos {
			s.t.Errorf("pos %d stands behind %d", e.Pos, s.pos)
		}
		s.pos, s.shown[e.Run] = e.Pos, ""
		s.lines = append(s.lines, lines(s.t, events[i:i+1])...)
	}
}

// Whatever runs commit and publish, here and elsewhere, in any order of notices, and
// whenever a reader begins, reads or stalls: it gets the journal from its position on,
// and never shows part of an answer that has a hole or is superseded.
func TestEveryReaderGetsTheJournalFromItsPlaceOn(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			store := memory.New(nil)
			f := follow.New(store)
			root := journal.Run{ID: "root"}
			runs := []*driven{{Driver: journaltest.Start(t, store, "root"), root: "root"}}
			for _, id := range []string{"one", "two"} {
				runs = append(runs, &driven{Driver: journaltest.StartBelow(t, store, id, root), root: "root"})
			}
			runs = append(runs, &driven{Driver: journaltest.Start(t, store, "other"), root: "other"})
			for _, d := range runs {
				d.f, d.source = f, f.Source(d.root)
				d.commit(t, said(0))
			}
			type seen struct {
				*screen
				sub *follow.Subscription
				q   follow.Query
			}
			var readers []seen
			var late []func()
			words := map[*driven]int{}
			for range 300 {
				d := runs[r.IntN(len(runs))]
				switch r.IntN(8) {
				case 0:
					publish := d.commit(t, said(r.IntN(9)))
					words[d] = 0
					late = append(late, publish)
				case 1, 2:
					d.commit(t, said(r.IntN(9)), said(r.IntN(9)))()
					words[d] = 0
				case 3: // by another process
					d.commit(t, said(r.IntN(9)))
					words[d] = 0
				case 4:
					if n := words[d]; n < 5 {
						d.say(strings.Fields("one two three four five")[n] + " ")
						words[d]++
					}
				case 5:
					for _, p := range late {
						p()
					}
					late = nil
				case 6:
					last, err := store.Last(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					q := follow.Query{Run: []string{"root", "one", "other"}[r.IntN(3)], Tree: r.IntN(2) == 0, Deltas: true, After: r.Int64N(last + 1)}
					readers = append(readers, seen{&screen{t: t, pos: q.After, shown: map[string]string{}}, subscribe(t, f, q), q})
				case 7:
					for _, s := range readers {
						if r.IntN(2) == 0 {
							events, err := s.sub.Poll(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							s.take(events)
						}
					}
					time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				}
			}
			time.Sleep(time.Second)
			for i, s := range readers {
				s.take(all(t, s.sub))
				records, err := wanted(t.Context(), store, s.q)
				if diff := cmp.Diff(stored(t, records, err), s.lines); diff != "" {
					t.Fatalf("seed %d, reader %d of %+v (-journal +got):\n%s", seed, i, s.q, diff)
				}
				s.sub.Close()
			}
		})
	}
}

// wanted is what the journal has for a query.
func wanted(ctx context.Context, store journal.Store, q follow.Query) ([]journal.Record, error) {
	records, err := store.Tail(ctx, q.After, 0)
	return slices.DeleteFunc(records, func(r journal.Record) bool {
		return r.Run != q.Run && (!q.Tree || q.Run != r.Root)
	}), err
}

// A reader that comes in the middle of an answer gets what was said so far, once, and
// then the rest; one that wants no live events gets none.
func TestAReaderInTheMiddleOfAnAnswerGetsTheTextSoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		f := follow.New(store)
		d := &driven{Driver: journaltest.Start(t, store, "a"), f: f, root: "a", source: f.Source("a")}
		d.commit(t, said(1))()
		plain := subscribe(t, f, follow.Query{Run: "a"})
		heard := func(s *follow.Subscription) (text string) {
			time.Sleep(time.Second)
			for _, e := range all(t, s) {
				switch d := e.Data.(type) {
				case event.Text:
					text += d.Text
				case event.TextReset:
					text += "<reset>"
				case event.InputReceived:
					text += "|"
				}
			}
			return text
		}
		for range 2 {
			d.say("one ") // to no one
			d.say("two ")
			first := subscribe(t, f, follow.Query{Run: "a", Deltas: true, After: d.at.Pos})
			if got := heard(first); got != "one two " {
				t.Errorf("the first gets %q", got)
			}
			d.say("three ")
			second := subscribe(t, f, follow.Query{Run: "a", Deltas: true, After: d.at.Pos})
			d.say("four ")
			publish := d.commit(t, said(2))
			late := subscribe(t, f, follow.Query{Run: "a", Deltas: true, After: d.at.Pos})
			d.say("five ") // follows an event that is not published
			again := subscribe(t, f, follow.Query{Run: "a", Deltas: true, After: d.at.Pos})
			publish()
			d.say("six ")
			for name, s := range map[string]*follow.Subscription{"three four |five six ": first, "|five six ": second, "five six ": late} {
				if got := heard(s); got != name {
					t.Errorf("%q is given as %q", name, got)
				}
			}
			if got := heard(again); got != "five six " {
				t.Errorf("one that came before the event was published gets %q", got)
			}
			d.source.Forget()
			if got := heard(subscribe(t, f, follow.Query{Run: "a", Deltas: true, After: d.at.Pos})); got != "" {
				t.Errorf("after the answer %q is given", got)
			}
			d.commit(t, said(3))()
		}
		if got := heard(plain); strings.Trim(got, "|") != "" {
			t.Errorf("%q is given to who wants none", got)
		}
	})
}

func TestLiveEventsThatGoOnAreJoined(t *testing.T) {
	live := func(run string, data event.Data) follow.Event {
		return follow.Event{Event: event.Event{Run: run, Data: data}}
	}
	text := func(run, text string, attempt int) follow.Event {
		return live(run, event.Text{Text: text, Attempt: attempt})
	}
	durable := follow.Durable(event.Event{Seq: 1, Pos: 1, Run: "a", Data: event.CycleStart{Cycle: 1}}, 0)
	call := func(tool, args string) follow.Event {
		return live("a", event.ToolCallDelta{Tool: tool, Text: args, Attempt: 1, Index: 1})
	}
	thought := func(text string) follow.Event { return live("a", event.Reasoning{Text: text, Attempt: 1}) }
	got := follow.Coalesce([]follow.Event{
		text("a", "one ", 1), text("a", "two ", 1), text("b", "three", 1), text("a", "four ", 1), durable,
		text("a", "five ", 1), text("a", "six ", 2), thought("so "), thought("it is"), call("run", "{"), call("", "}"), call("run", "{}"),
	})
	var said []string
	for _, e := range got {
		said = append(said, fmt.Sprint(e.Run, " ", e.Data))
	}
	want := []string{
		"a {one two  1 0}", "b {three 1 0}", "a {four  1 0}", fmt.Sprint("a ", durable.Data),
		"a {five  1 0}", "a {six  2 0}", "a {so it is 1 0}", "a {run {} 1 1}", "a {run {} 1 1}",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
