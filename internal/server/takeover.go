package server

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/journal"
)

const (
	// lookAgain is how often a server looks for runs that another one left. Where a
	// look takes long, it waits lookShare times as long, so that looking costs little.
	lookAgain = time.Second
	lookShare = 50
	// retryFirst is how long a run waits that could not be continued, and retryLast how
	// long at most; each time it waits twice as long.
	retryFirst = 2 * time.Second
	retryLast  = time.Minute
)

// looked is a run as it was looked at last.
type looked struct {
	seq int64
	// again is when another look makes sense; zero says never, unless the run changes.
	again time.Time
	wait  time.Duration
}

// takeOver continues what servers of this journal left, until ctx ends: at once what
// the last one had when it stopped, and later what another one leaves.
func (s *Server) takeOver(ctx context.Context) {
	before := map[string]looked{}
	for {
		began := time.Now()
		if err := s.takeOverOnce(ctx, before); err != nil && ctx.Err() == nil {
			s.log.Error("runs that another server left cannot be looked for", "error", err)
		}
		if !sleep(ctx, max(lookAgain, lookShare*time.Since(began))) {
			return
		}
	}
}

// takeOverOnce looks once. before has the runs that were looked at.
func (s *Server) takeOverOnce(ctx context.Context, before map[string]looked) error {
	rows, err := s.store.Runs(ctx, journal.Filter{Roots: true, States: []journal.State{journal.Queued, journal.Running, journal.Waiting}})
	if err != nil {
		return err
	}
	parked, err := s.store.Runs(ctx, journal.Filter{Roots: true, States: []journal.State{journal.Parked}, Detail: string(event.ParkInterrupted)})
	if err != nil {
		return err
	}
	there, gone := map[string]bool{}, map[string]bool{}
	for _, r := range append(rows, parked...) {
		there[r.ID] = true
		if control.Driven(r, time.Now()) {
			if _, known := gone[r.Owner]; !known {
				gone[r.Owner] = holder.Gone(r.Owner)
			}
			if !gone[r.Owner] {
				continue
			}
		}
		if b, was := before[r.ID]; was && b.seq == r.Seq && (b.again.IsZero() || time.Now().Before(b.again)) {
			continue
		}
		if before[r.ID], err = s.takeOverRun(ctx, r, before[r.ID]); err != nil {
			return err
		}
	}
	for id := range before {
		if !there[id] {
			delete(before, id)
		}
	}
	return nil
}

// takeOverRun continues a run that nobody drives, if a server left it.
func (s *Server) takeOverRun(ctx context.Context, r journal.Run, before looked) (looked, error) {
	left, err := s.controller.LeftByServer(ctx, r)
	if err == nil && !left {
		return looked{seq: r.Seq}, nil
	}
	if err == nil {
		err = s.takeUp(r.ID)
	}
	_, held := errors.AsType[*journal.HeldError](err)
	switch {
	case ctx.Err() != nil:
		return before, ctx.Err()
	case held || errors.Is(err, journal.ErrEnded) || errors.Is(err, journal.ErrNotFound):
		return looked{seq: r.Seq, again: time.Now()}, nil // somebody was faster
	}
	wait := retryFirst
	if before.seq == r.Seq { // it did not get on
		wait = min(max(wait, 2*before.wait), retryLast)
	}
	if err != nil {
		s.log.Error("a run that a server left does not go on", "run", r.ID, "again", wait, "error", err)
	} else {
		s.owners.miss(r.ID)
		s.log.Info("took over a run that a server left", "run", r.ID)
	}
	return looked{r.Seq, time.Now().Add(wait), wait}, nil
}
