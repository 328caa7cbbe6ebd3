package follow

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// speaker is a source that publishes, with its readers.
type speaker struct {
	*Source
	word  string
	begun bool
	subs  []*Subscription
}

func newSpeaker(t testing.TB, hearers int) *speaker {
	t.Helper()
	store := memory.New(nil)
	f := New(store)
	journaltest.Start(t, store, "r")
	s := &speaker{Source: f.Source("r"), word: "word"}
	for range hearers {
		sub, err := f.Subscribe(t.Context(), Query{Run: "r", Deltas: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sub.Close)
		if _, err := sub.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.subs = append(s.subs, sub)
	}
	return s
}

func (s *speaker) speak() {
	s.Say(event.Event{Run: "r", Data: event.Text{Text: s.word, Attempt: 1}}, Place{Seq: 1, Pos: 1, First: !s.begun})
	s.begun = true
}

// listen reads until n events came.
func listen(t testing.TB, s *Subscription, n int) {
	t.Helper()
	for n > 0 {
		events, err := s.Poll(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		if n -= len(events); n > 0 && !s.More() {
			<-s.Wake()
		}
	}
}

func TestADeltaToOneReaderCostsAtMostOneAllocation(t *testing.T) {
	s := newSpeaker(t, 1)
	s.speak()
	listen(t, s.subs[0], 1)
	if n := testing.AllocsPerRun(1000, func() {
		s.speak()
		listen(t, s.subs[0], 1)
	}); n > 1 {
		t.Errorf("%.1f allocations a delta", n)
	}
}

func TestAStalledReaderKeepsABoundedNumberOfEvents(t *testing.T) {
	s := newSpeaker(t, 1)
	for range 10 * ringLimit {
		s.speak()
	}
	if n := cap(s.topic.buf); n > 2*ringLimit {
		t.Errorf("the buffer has room for %d events", n)
	}
}

func TestWhatAllHaveReadIsForgotten(t *testing.T) {
	s := newSpeaker(t, 3)
	for range 100 {
		for range 100 {
			s.speak()
		}
		for _, sub := range s.subs {
			listen(t, sub, 100)
		}
	}
	if n := cap(s.topic.buf); n > 1000 {
		t.Errorf("the buffer has room for %d events of which none is needed", n)
	}
	for _, sub := range s.subs {
		sub.Close()
	}
	s.Close()
	if len(s.follower.topics) != 0 || s.topic.buf != nil || len(s.topic.sources) > 0 {
		t.Errorf("%d topics and %d events are kept for nobody", len(s.follower.topics), len(s.topic.buf))
	}
}

// Ten thousand idle readers, each of a run of its own, are a few MiB.
func TestAnIdleReaderIsSmall(t *testing.T) {
	const readers = 2000
	store := memory.New(nil)
	f := New(store)
	for i := range readers {
		journaltest.Start(t, store, fmt.Sprint(i))
	}
	before := heap()
	for i := range readers {
		s, err := f.Subscribe(t.Context(), Query{Run: fmt.Sprint(i), Tree: true, Deltas: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if events, err := s.Poll(t.Context()); err != nil || len(events) != 1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
	}
	if each := (heap() - before) / readers; each > 4<<10 {
		t.Errorf("an idle reader takes %d bytes", each)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkPublishDelta(b *testing.B) {
	for _, readers := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			s := newSpeaker(b, readers)
			stop := make(chan struct{})
			var reading sync.WaitGroup
			for _, sub := range s.subs {
				reading.Go(func() {
					for {
						if _, err := sub.Poll(b.Context()); err != nil {
							b.Error(err)
							return
						}
						if sub.More() {
							continue
						}
						select {
						case <-sub.Wake():
						case <-stop:
							return
						}
					}
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				s.speak()
			}
			close(stop)
			reading.Wait()
		})
	}
}
