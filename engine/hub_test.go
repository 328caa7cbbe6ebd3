package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
)

// speaker is a hub with somebody who speaks on it.
type speaker struct {
	*hub
	v    *voice
	word string
}

func newSpeaker() *speaker {
	return &speaker{hub: &hub{run: "r", now: time.Now}, v: new(voice), word: "word"}
}

func (s *speaker) sayText() {
	if s.heard() {
		s.say(s.v, 1, event.Text{Text: s.word, Attempt: 1})
	}
}

// listen reads what a subscriber gets until n events came or were lost.
func listen(s *subscriber, n int) (read int) {
	buf := make([]entry, 64)
	for read < n {
		got, gap, ok := s.read(context.Background(), buf)
		if !ok || gap {
			return read
		}
		read += got
	}
	return read
}

func TestADeltaToOneSubscriberCostsAtMostOneAllocation(t *testing.T) {
	d := newSpeaker()
	sub, buf := d.subscribe(true), make([]entry, 64)
	d.sayText()
	sub.poll(buf)
	if n := testing.AllocsPerRun(1000, func() {
		d.sayText()
		sub.poll(buf)
	}); n > 1 {
		t.Errorf("%.1f allocations a delta", n)
	}
}

func TestAStalledSubscriberKeepsABoundedNumberOfEvents(t *testing.T) {
	d := newSpeaker()
	d.subscribe(true)
	for range 10 * ringLimit {
		d.sayText()
	}
	if n := cap(d.buf); n > 2*ringLimit {
		t.Errorf("the buffer has room for %d events", n)
	}
}

func TestARunWithoutSubscribersKeepsNothing(t *testing.T) {
	d := newSpeaker()
	d.unsubscribe(d.subscribe(true))
	for range 100 {
		d.sayText()
	}
	if len(d.buf) != 0 || d.heard() {
		t.Errorf("%d events are kept for nobody", len(d.buf))
	}
	late := d.subscribe(true)
	d.sayText()
	if n, gap, _ := late.poll(make([]entry, 8)); n != 1 || gap {
		t.Errorf("a late subscriber gets %d events, gap %t", n, gap)
	}
}

func BenchmarkPublishDelta(b *testing.B) {
	for _, subscribers := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprint(subscribers), func(b *testing.B) {
			d := newSpeaker()
			var readers sync.WaitGroup
			for range subscribers {
				sub := d.subscribe(true)
				readers.Go(func() {
					buf := make([]entry, 64)
					for {
						if _, _, ok := sub.read(context.Background(), buf); !ok {
							return
						}
					}
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				d.sayText()
			}
			d.close()
			readers.Wait()
		})
	}
}

// The figure of the issue: an answer of 20,000 deltas to one subscriber.
func BenchmarkTwentyThousandDeltasToOneSubscriber(b *testing.B) {
	const deltas = 20_000
	b.ReportAllocs()
	for b.Loop() {
		d := newSpeaker()
		sub := d.subscribe(true)
		done := make(chan int)
		go func() { done <- listen(sub, deltas) }()
		for range deltas {
			d.sayText()
		}
		d.close()
		if n := <-done; n != deltas {
			b.Fatalf("%d of %d deltas arrived", n, deltas)
		}
	}
}
