package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/server/socketio"
	"github.com/pawlrun/pawl/journal"
)

// announce tells all who hear what the loops of the journal do, whoever started them,
// until ctx ends.
func (k *sockets) announce(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.announceAll(ctx); err != nil && ctx.Err() == nil {
			k.server.log.Error("clients hear nothing of loops for now", "error", err)
			sleep(ctx, time.Second)
		}
	}
}

func (k *sockets) announceAll(ctx context.Context) error {
	since := time.Now()
	begun, after, stop, err := k.server.follower.Begun(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var telling sync.WaitGroup
	defer telling.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := map[string]bool{}
	rows, err := k.server.store.Runs(ctx, journal.Filter{Kind: launch.KindLoop, Roots: true, States: open()})
	for err == nil {
		for _, row := range rows {
			telling.Go(func() { k.follow(ctx, row, after) })
			known[row.ID] = true
		}
		select {
		case <-begun:
			rows, err = k.newLoops(ctx, since, known)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// newLoops are the loops that have begun since a time and are not known.
func (k *sockets) newLoops(ctx context.Context, since time.Time, known map[string]bool) (unknown []journal.Run, err error) {
	wanted := journal.Filter{Kind: launch.KindLoop, Roots: true, Limit: 20}
	for {
		rows, err := k.server.store.Runs(ctx, wanted)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Created.Before(since) || known[row.ID] {
				return unknown, nil
			}
			unknown = append(unknown, row)
			wanted.Before = row.ID
		}
		if len(rows) < wanted.Limit {
			return unknown, nil
		}
	}
}

// follow tells of one loop until it ends. What it did up to a place is not told, but how
// it stood there.
func (k *sockets) follow(ctx context.Context, row journal.Run, after int64) {
	sub, err := k.server.follower.Subscribe(ctx, follow.Query{Run: row.ID})
	if err == nil {
		defer sub.Close()
		defer k.forget(row.ID)
		err = k.tellOf(ctx, row, sub, after)
	}
	if err != nil && ctx.Err() == nil {
		k.server.log.Error("clients hear nothing of a loop", "run", row.ID, "error", err)
	}
}

func (k *sockets) tellOf(ctx context.Context, row journal.Run, sub *follow.Subscription, after int64) error {
	stands := &standing{run: row.ID}
	for {
		events, err := sub.Poll(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			k.tell(stands, rondoEvents(row.Name, &e.Event), &e.Event, e.Pos > after)
			if e.Type() == event.TypeRunCompleted {
				return nil
			}
		}
		switch {
		case sub.More():
			continue
		case row.State == journal.Ended: // before anybody heard
			return nil
		}
		k.introduce(stands)
		select {
		case <-sub.Wake():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// standing is what who comes in the middle of a loop is told of it.
type standing struct {
	run                       string
	status, iteration, review []saying
}

func (s *standing) all() []saying { return slices.Concat(s.status, s.iteration, s.review) }

// note takes note of an event, and of how clients are told of it.
func (s *standing) note(e *event.Event, said []saying) {
	switch e.Data.(type) {
	case event.RunStarted, event.RunResumed, event.RunParked:
		s.status = said
	case event.Iteration:
		s.iteration = said
	case event.ReviewRequested:
		s.review = said
	case event.ReviewResolved:
		s.review = nil
	}
}

// introduce tells all who hear how a loop stands, and from now on each who comes.
func (k *sockets) introduce(stands *standing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stands[stands.run] == nil {
		k.stands[stands.run] = stands
		k.send(stands.all())
	}
}

// tell takes note of what a loop did, and sends it to all who hear unless it is history.
func (k *sockets) tell(stands *standing, said []saying, e *event.Event, live bool) {
	if live {
		k.introduce(stands)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	stands.note(e, said)
	if live {
		k.send(said)
	}
}

// send sends events to all who hear. The lock is held.
func (k *sockets) send(said []saying) {
	if len(said) == 0 {
		return
	}
	frames := k.framesOf(said)
	for c := range k.hearing {
		c.session.Send(frames...)
	}
}

func (k *sockets) forget(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.stands, run)
}

// framesOf are events as they are sent.
func (k *sockets) framesOf(said []saying) (frames []socketio.Frame) {
	for _, e := range said {
		p, err := socketio.NewEvent(socketio.MainNamespace, e.event, e.data)
		if err != nil {
			k.server.log.Error("an event is not told", "event", e.event, "error", err)
			continue
		}
		frames = append(frames, p.Frames()...)
	}
	return frames
}
