package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/journal"
)

// Dispatcher decides where and when the runs of a server are driven. A server with a
// dispatcher drives no run. It is safe for concurrent use.
type Dispatcher interface {
	// Dispatch arranges that a worker drives a run. With resume the worker also drives
	// a run that has nothing new to read.
	Dispatch(ctx context.Context, run string, resume bool) error
	// Full reports after how long a client may retry if too many runs are queued, and 0
	// if another run may be queued.
	Full(ctx context.Context) (again time.Duration, err error)
	// Run dispatches the runs for which Dispatch was not called or failed, until ctx
	// ends.
	Run(ctx context.Context)
}

// continueOthers continues the runs that other processes left, until ctx ends.
func (s *Server) continueOthers(ctx context.Context) {
	if s.dispatcher != nil {
		s.going.Go(func() { s.dispatcher.Run(ctx) })
	} else {
		s.going.Go(func() { s.Announce(ctx) })
	}
	s.takeOver(ctx)
}

// Announce registers the server in the journal as a driver of runs, until ctx ends.
func (s *Server) Announce(ctx context.Context) {
	if drivers, may := s.store.(journal.KeepsDrivers); may {
		holder.Announce(ctx, drivers, s.driver, s.unregistered)
	}
}

// redispatch arranges that a worker resumes a run.
func (s *Server) redispatch(ctx context.Context, run string) error {
	row, err := s.store.Run(ctx, run)
	switch {
	case err != nil:
		return err
	case row.State == journal.Ended:
		return fmt.Errorf("server: run %s: %w", run, journal.ErrEnded)
	case row.Parent != "":
		return &engine.ChildError{Run: run, Parent: row.Parent, Root: row.Placed().Root}
	case s.engine.Drives(row):
		return &journal.HeldError{Run: run, Owner: row.Owner, Expiry: row.Expiry}
	}
	if err := s.dispatcher.Dispatch(ctx, run, true); err != nil {
		s.log.Warn("a run is not dispatched", "run", run, "error", err)
		return kindUnavailable.problem("send it again later; what the journal has is not lost", "what places the runs cannot be reached").about(run, "")
	}
	return s.missed(ctx, row)
}

// missed records in the row of a run if no worker has the run's place.
func (s *Server) missed(ctx context.Context, row journal.Run) error {
	started, _, err := drive.Began(ctx, s.store, row.ID)
	if err != nil || started.Place == (event.Place{}) {
		return err
	}
	live, err := s.live(ctx)
	if waits := waitsFor(live, started.Place); err == nil && strings.HasPrefix(waits, journal.WaitNoWorker) {
		err = s.setAsideFor(ctx, row, waits)
	}
	if _, held := errors.AsType[*journal.HeldError](err); held {
		return nil // a worker drives it
	}
	return err
}

// mayQueue refuses a start if too many runs are queued.
func (s *Server) mayQueue(ctx context.Context) error {
	if s.dispatcher == nil {
		return nil
	}
	again, err := s.dispatcher.Full(ctx)
	if err != nil || again == 0 {
		return err
	}
	p := kindBusy.problem("send it again after the seconds in the header Retry-After", "too many runs are queued; nothing was begun")
	p.retryAfter = again
	return p
}

// Begin makes a run with an id for a worker to drive. It does nothing if the run is there.
func (s *Server) Begin(ctx context.Context, id string, started event.RunStarted) error {
	if err := s.engine.Queue(ctx, id, started, nil); !errors.Is(err, journal.ErrExists) {
		return err
	}
	return nil
}

const (
	// lookAtWait is how often Drive looks at how long a run waits. The look reads nothing
	// from the journal, and waking for each commit would cost more.
	lookAtWait = time.Second
	// longWait is the longest wait during which a run keeps its worker.
	longWait = 30 * time.Second
	// callsEnd is how long the calls of a run that parks may go on, and answerEnds how long
	// they may go on where an answer of a model arrives. A stopped call of a model returns
	// at once and any other within 5 s, so the run parks within 10 s.
	callsEnd   = 4 * time.Second
	answerEnds = 8 * time.Second
)

// Drive drives a run until it ends, parks, or waits longer than 30 s, and returns its
// row. wake is the end of such a wait, zero if the run waits for none. If ctx ends, the
// run parks. Drive does not resume a parked run that has nothing new to read, unless
// resume is set.
func (s *Server) Drive(ctx context.Context, run string, resume bool) (row journal.Run, wake time.Time, err error) {
	if row, err = s.store.Run(ctx, run); err != nil {
		return row, wake, err
	}
	if due, err := s.due(ctx, row); err != nil || row.State == journal.Ended || !due && !resume {
		return row, wake, err
	}
	if err = s.settle(ctx, run); err == nil {
		err = s.resumeRun(run)
	}
	if errors.Is(err, journal.ErrEnded) {
		row, err = s.store.Run(ctx, run)
		return row, wake, err
	}
	if err != nil {
		return row, wake, err
	}
	if kept, driven := s.attended.Load(run); driven {
		if row.Owner != "" { // its lease had expired
			s.metrics.Add(signals.TakenOver, 1)
			s.log.Info("took over a run that a worker left", "run", run)
		}
		wake = s.accompany(ctx, kept.(drive.Run))
	}
	row, err = s.store.Run(context.WithoutCancel(ctx), run)
	return row, wake, err
}

// accompany waits until a run is no longer driven. If ctx ends the run parks: calls under way
// may end within a bounded time. It also parks if it waits for a long time, whose end
// accompany returns.
func (s *Server) accompany(ctx context.Context, r drive.Run) (wake time.Time) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = r.Wait(context.WithoutCancel(ctx)) // attend logs the error
	}()
	look := time.NewTicker(lookAtWait)
	defer look.Stop()
	ended := ctx.Done()
	var late, latest <-chan time.Time
	for {
		select {
		case <-left:
			return wake
		case <-ended:
			r.Park()
			ended, late, latest = nil, time.After(callsEnd), time.After(answerEnds)
		case <-late:
			if !r.Streams() {
				r.Interrupt()
			}
		case <-latest:
			r.Interrupt()
		case <-look.C:
			if at := r.Wakes(); wake.IsZero() && time.Until(at) > longWait {
				wake = at
				r.Interrupt()
			}
		}
	}
}

// due reports whether a run that no process drives has something to do.
func (s *Server) due(ctx context.Context, r journal.Run) (bool, error) {
	if r.State != journal.Parked && r.State != journal.Paused || r.Detail == string(event.ParkInterrupted) {
		return r.State != journal.Ended, nil
	}
	unread, err := s.store.Inbox(ctx, r.ID)
	if err != nil || len(unread) > 0 {
		return err == nil, err
	}
	parks, err := s.parksSince(ctx, r)
	if err != nil || parks {
		return parks, err
	}
	return s.childrenAnswered(ctx, r)
}
