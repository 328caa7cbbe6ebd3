package server

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/follow"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
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

// follow tells of one loop until it ends.
func (k *sockets) follow(ctx context.Context, row journal.Run, after int64) {
	sub, err := k.server.follower.Subscribe(ctx, follow.Query{Run: row.ID, After: after})
	if err == nil {
		defer sub.Close()
		err = k.tellOf(ctx, row, sub)
	}
	if err != nil && ctx.Err() == nil {
		k.server.log.Error("clients hear nothing of a loop", "run", row.ID, "error", err)
	}
}

func (k *sockets) tellOf(ctx context.Context, row journal.Run, sub *follow.Subscription) error {
	for {
		events, err := sub.Poll(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			for _, e := range rondoEvents(row.Name, &events[i].Event) {
				k.tell(e)
			}
			if events[i].Type() == event.TypeRunCompleted {
				return nil
			}
		}
		if sub.More() {
			continue
		}
		if row.State == journal.Ended { // and what it did is told
			return nil
		}
		select {
		case <-sub.Wake():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
