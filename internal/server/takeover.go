package server

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal"
)

const (
	// lookAgain is how often a server looks for runs that another one left. After a
	// slow search it waits lookShare times as long as the search took, so that
	// searching stays cheap.
	lookAgain = time.Second
	lookShare = 50
	// retryFirst is the first delay before another attempt to resume a run, and
	// retryLast the longest; each delay is twice the previous one.
	retryFirst = 2 * time.Second
	retryLast  = time.Minute
)

// takeoverAttempt is the last attempt to take over a run.
type takeoverAttempt struct {
	seq int64
	// again is when to try again; zero means never, unless the run changes.
	again time.Time
	wait  time.Duration
	// at is the run's place, nil if it is not known.
	at *event.Place
}

// takeOver resumes runs that servers of this journal left, until ctx ends: at once
// those of the last server, and later those of others.
func (s *Server) takeOver(ctx context.Context) {
	before := map[string]takeoverAttempt{}
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

// takeOverOnce searches once. before holds the earlier attempts.
func (s *Server) takeOverOnce(ctx context.Context, before map[string]takeoverAttempt) error {
	rows, err := s.undriven(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	live, err := s.live(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, r := range rows {
		there[r.ID] = true
		if b, was := before[r.ID]; was && b.seq == r.Seq && (b.again.IsZero() && !r.WaitsForWorker() || time.Now().Before(b.again)) {
			continue
		}
		if before[r.ID], err = s.takeOverRun(ctx, r, before[r.ID], live); err != nil {
			return err
		}
	}
	for id, b := range before {
		// A run that goes on is not listed, and may stop again without progress.
		if !there[id] && time.Since(b.again) > retryLast {
			delete(before, id)
		}
	}
	return nil
}

// undriven returns the root runs that a driver left: their lease has expired, or its
// holder is known to be gone.
func (s *Server) undriven(ctx context.Context) (rows []journal.Run, err error) {
	find := func(f journal.Filter) {
		for _, f.States = range [][]journal.State{{journal.Queued, journal.Running, journal.Waiting}, {journal.Parked}} {
			if f.Detail = ""; f.States[0] == journal.Parked {
				f.Detail = string(event.ParkInterrupted)
			}
			if err == nil {
				var found []journal.Run
				found, err = s.store.Runs(ctx, f)
				rows = append(rows, found...)
			}
		}
	}
	find(journal.Filter{Roots: true, Free: true})
	owners, wrong := s.store.Owners(ctx)
	valid := time.Now().Add(time.Hour) // a lease that has expired is free
	for _, owner := range owners {
		if !s.engine.Drives(journal.Run{Owner: owner, Expiry: valid}) {
			find(journal.Filter{Roots: true, Owner: owner})
		}
	}
	return rows, cmp.Or(err, wrong)
}

// takeOverRun resumes a run without a driver, if a server left it. It sets aside a run that
// this server may not drive.
func (s *Server) takeOverRun(ctx context.Context, r journal.Run, before takeoverAttempt, live []journal.Driver) (takeoverAttempt, error) {
	left, err := r.WaitsForWorker(), error(nil)
	if !left {
		left, err = control.LeftByServer(ctx, s.store, r)
	}
	if err == nil && !left {
		return takeoverAttempt{seq: r.Seq}, nil
	}
	at, dir := before.at, ""
	if err == nil && (at == nil || before.seq != r.Seq || s.dispatcher == nil) {
		var started event.RunStarted
		if started, _, err = drive.Began(ctx, s.store, r.ID); err == nil {
			at, dir = &started.Place, started.Workspace
		}
	}
	elsewhere := err == nil && (s.dispatcher != nil || !s.launch.Here.Has(*at))
	waits := ""
	if elsewhere {
		waits = waitsFor(live, *at)
	}
	switch {
	case err != nil:
	case s.dispatcher != nil && (*at == event.Place{} || !r.WaitsForWorker() && strings.HasPrefix(waits, journal.WaitWorker)):
		// A worker has it, or may have it.
	case elsewhere:
		err = s.setAsideFor(ctx, r, waits)
	case at.Repo != "" && dir == "":
		s.begin(r.ID)
		return takeoverAttempt{seq: r.Seq, again: time.Now().Add(workerAgain)}, nil
	default:
		err = s.resumeRun(r.ID)
	}
	_, held := errors.AsType[*journal.HeldError](err)
	switch {
	case ctx.Err() != nil:
		return before, ctx.Err()
	case held || errors.Is(err, journal.ErrEnded) || errors.Is(err, journal.ErrNotFound):
		return takeoverAttempt{seq: r.Seq, again: time.Now(), at: at}, nil // another process was faster
	}
	if elsewhere && err == nil {
		return takeoverAttempt{seq: r.Seq, again: time.Now().Add(workerAgain), at: at}, nil
	}
	wait := retryFirst
	if before.seq == r.Seq { // it made no progress
		wait = min(max(wait, 2*before.wait), retryLast)
	}
	if err != nil {
		s.log.Error("a run that a server left does not go on", "run", r.ID, "again", wait, "error", err)
	} else {
		s.owners.miss(r.ID)
		s.metrics.Add(signals.TakenOver, 1)
		s.log.Info("took over a run that a server left", "run", r.ID)
	}
	return takeoverAttempt{seq: r.Seq, again: time.Now().Add(wait), wait: wait, at: at}, nil
}
