package follow

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// Source is a run as a source of live events, usually one that this process drives.
type Source struct {
	follower *Follower
	topic    *topic
	// said belongs to the topic.
	said soFar
}

// Place is the place of a live event: after which durable event of its run, and whether
// it is the first of its attempt.
type Place struct {
	Seq, Pos int64
	First    bool
}

// Place returns the place of a live event.
func (e *Event) Place() Place { return Place{Seq: e.after, Pos: e.behind, First: !e.mid} }

// Source adds a run of a tree.
func (f *Follower) Source(root string) *Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Source{follower: f, topic: f.take(root)}
	s.topic.enter(s)
	return s
}

// Say publishes a live event, and keeps the text of the unfinished answer for readers
// that join during it. It never waits for a reader.
func (s *Source) Say(e event.Event, at Place) {
	s.topic.publishLive(s, Event{Event: e, after: at.Seq, behind: at.Pos, mid: !at.First})
}

// Forget drops what was kept of an answer, because it is complete.
func (s *Source) Forget() { s.topic.forget(s) }

// Close removes the source.
func (s *Source) Close() {
	s.topic.exit(s)
	s.follower.drop(s.topic)
}

// Durable returns an event that this process has committed, with its stored size.
func Durable(e event.Event, size int) Event {
	return Event{Event: e, size: size}
}

// Listened reports whether there is any subscription.
func (f *Follower) Listened() bool { return f.listening.Load() > 0 }

// Publish publishes what a run of a tree has committed at once: count events with
// consecutive positions from first on, which at returns. They are published in the
// order of the journal, so they may wait for the commits of others. It never waits for
// a reader.
func (f *Follower) Publish(root string, first int64, count int, at func(i int) Event) {
	if count == 0 || !f.Listened() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.pos != unknown && first <= f.pos: // it was read already
	case f.pos != unknown && first == f.pos+1:
		f.publish(batch{root, first, count, at})
		f.reach(f.pos)
	case len(f.early) < earlyLimit:
		events := make([]Event, count)
		for i := range events {
			events[i] = at(i)
		}
		f.early[first] = batch{root, first, count, func(i int) Event { return events[i] }}
	}
}

// Begun returns a channel that receives after a root run has, or may have, started; one
// value may represent several runs. It starts after pos, and ends with stop.
func (f *Follower) Begun(ctx context.Context) (begun <-chan struct{}, pos int64, stop func(), err error) {
	if pos, err = f.listen(ctx); err != nil {
		return nil, 0, nil, fmt.Errorf("follow: the runs that begin: %w", err)
	}
	wake := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins[wake] = true
	return wake, pos, func() {
		f.mu.Lock()
		delete(f.begins, wake)
		f.mu.Unlock()
		f.leave()
	}, nil
}

// begun notifies the channels of Begun of an event that starts a root run.
func (f *Follower) begun(kind event.Type, run, root string) {
	if kind == event.TypeRunStarted && run == root {
		f.notifyBegun()
	}
}

func (f *Follower) notifyBegun() {
	for wake := range f.begins {
		select {
		case wake <- struct{}{}:
		default: // a notification is pending already
		}
	}
}
