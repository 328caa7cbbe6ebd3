package server

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/server/rondo"
	"github.com/pawlrun/pawl/internal/server/socketio"
	"github.com/pawlrun/pawl/journal"
)

// announce sends the progress of all loops in the journal to all listening clients,
// until ctx ends. The process that started a loop does not matter.
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

// newLoops returns the loops that started after a time and are not known yet.
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

// follow reports on one loop until it ends. Events up to after are summarized as
// the loop's current state instead of being sent.
func (k *sockets) follow(ctx context.Context, row journal.Run, after int64) {
	sub, err := k.server.follower.Subscribe(ctx, follow.Query{Run: row.ID})
	if err == nil {
		defer sub.Close()
		defer k.forget(row.ID)
		err = k.followLoop(ctx, row, sub, after)
	}
	if err != nil && ctx.Err() == nil {
		k.server.log.Error("clients hear nothing of a loop", "run", row.ID, "error", err)
	}
}

func (k *sockets) followLoop(ctx context.Context, row journal.Run, sub *follow.Subscription, after int64) error {
	state := &rondo.Snapshot{Run: row.ID}
	for {
		events, err := sub.Poll(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			k.apply(state, rondo.Messages(row.Name, &e.Event), &e.Event, e.Pos > after)
			if e.Type() == event.TypeRunCompleted {
				return nil
			}
		}
		switch {
		case sub.More():
			continue
		case row.State == journal.Ended: // it ended before a client listened
			return nil
		}
		k.introduce(state)
		select {
		case <-sub.Wake():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// introduce sends the state of a loop to all listening clients, and registers it
// for clients that join later.
func (k *sockets) introduce(state *rondo.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.loops[state.Run] == nil {
		k.loops[state.Run] = state
		k.send(state.Messages())
	}
}

// apply applies an event of a loop and, unless it is history, sends it to all
// listening clients.
func (k *sockets) apply(state *rondo.Snapshot, events []rondo.Message, e *event.Event, live bool) {
	if live {
		k.introduce(state)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	state.Apply(e, events)
	if live {
		k.send(events)
	}
}

// send sends events to all listening clients. The caller holds the lock.
func (k *sockets) send(events []rondo.Message) {
	if len(events) == 0 {
		return
	}
	frames := k.framesOf(events)
	for c := range k.listening {
		c.session.Send(frames...)
	}
}

func (k *sockets) forget(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.loops, run)
}

// framesOf encodes events as frames.
func (k *sockets) framesOf(events []rondo.Message) (frames []socketio.Frame) {
	for _, e := range events {
		p, err := socketio.NewEvent(socketio.MainNamespace, e.Event, e.Data)
		if err != nil {
			k.server.log.Error("an event is not sent", "event", e.Event, "error", err)
			continue
		}
		frames = append(frames, p.Frames()...)
	}
	return frames
}
