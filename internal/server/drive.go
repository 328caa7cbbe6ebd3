package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
)

// start creates a run of an id and drives it until it ends, parks, or the server closes.
func (s *Server) start(id string, started event.RunStarted, env engine.Env) (string, error) {
	r, err := s.engine.StartAs(s.running, id, started, env)
	if err != nil {
		return "", err
	}
	s.owners.keep(r.ID, started)
	s.attend(r)
	return r.ID, nil
}

// takeUp drives a run from where it stands.
func (s *Server) takeUp(run string) error {
	var first event.RunStarted
	r, err := s.engine.Resume(s.running, run, func(started event.RunStarted) (engine.Env, error) {
		first = started
		env, err := kinds.Resume(started, s.launch)
		if errors.Is(err, launch.ErrNoFile) {
			return env, problemOf(err).about(run, "")
		}
		if err != nil {
			return env, kindCannotGo.problem("fix what is missing, then POST /v1/runs/"+run+"/resume", "%s", control.Plain(err)).about(run, "")
		}
		return env, nil
	})
	if err != nil {
		return err
	}
	s.owners.keep(run, first)
	s.attend(r)
	return nil
}

// takenUp is how long an answer waits for the first event of a run that was
// taken up, which comes within milliseconds.
const takenUp = 2 * time.Second

// moved returns a run's row once it has an event after seq, or when ctx ends.
func (s *Server) moved(ctx context.Context, run string, seq int64) (journal.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, takenUp)
	defer cancel()
	return s.until(ctx, run, func(row journal.Run) bool { return row.Seq > seq })
}

// until returns a run's row once it is so, or when ctx ends.
func (s *Server) until(ctx context.Context, run string, so func(journal.Run) bool) (journal.Run, error) {
	changed := s.store.Watch(ctx)
	for {
		row, err := s.store.Run(context.WithoutCancel(ctx), run)
		if err != nil || so(row) {
			return row, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return row, nil
		}
	}
}

// attend waits for a run in the background; how it ended is in the journal, and
// the log hears of what is not.
func (s *Server) attend(r drive.Run) {
	s.attended.Store(r.RunID(), r)
	s.going.Go(func() {
		state, err := r.Wait(context.Background())
		s.attended.CompareAndDelete(r.RunID(), r)
		if err != nil {
			s.log.Error("run left", "run", r.RunID(), "error", err)
		}
		if state.Phase == machine.Ended {
			s.owners.forget(r.RunID())
		}
	})
}

// goOn makes sure that a parked run goes on from what was just said to it: the
// driver that it had may be leaving, or be another process's. It returns the
// run's row once the run is driven here, or a driver elsewhere has heard; what
// cannot be told at once is seen to in the background.
func (s *Server) goOn(ctx context.Context, run string) (journal.Run, error) {
	before, err := s.store.Run(ctx, run)
	if err != nil {
		return before, err
	}
	next, err := s.tryToGoOn(ctx, run)
	switch {
	case err != nil:
		return before, err
	case next == driving:
		return s.moved(ctx, run, before.Seq)
	case next == waiting:
		s.going.Go(func() { s.seeToIt(run) })
	}
	return before, nil
}

// seeToIt tries again whenever the journal changes and when the driver of this process
// has left, until the run goes on or its driver has read the command.
func (s *Server) seeToIt(run string) {
	ctx, cancel := context.WithCancel(s.running)
	defer cancel()
	changed := s.store.Watch(ctx)
	for {
		select {
		case <-changed:
		case <-s.left(ctx, run):
		case <-time.After(time.Second): // a lease ends without an event
		case <-s.running.Done():
			return
		}
		next, err := s.tryToGoOn(s.running, run)
		if err != nil {
			s.log.Error("run does not go on", "run", run, "error", err)
		}
		if err != nil || next != waiting {
			return
		}
	}
}

// left is closed when the driver that this process has for the run has left; it is nil
// where there is none.
func (s *Server) left(ctx context.Context, run string) <-chan struct{} {
	r, ok := s.attended.Load(run)
	if !ok {
		return nil
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = r.(drive.Run).Wait(ctx) // attend logs the error
	}()
	return left
}

// progress says how a run took what was said to it.
type progress int

const (
	// heard: whoever drives the run has it, or it has ended, or it has parked
	// anew since.
	heard progress = iota
	// driving: the run was taken up here.
	driving
	// waiting: whoever drives the run has not heard all of it yet.
	waiting
)

// tryToGoOn takes a run up that has parked, or was left by its process, before
// the newest word to it.
func (s *Server) tryToGoOn(ctx context.Context, run string) (progress, error) {
	r, err := s.store.Run(ctx, run)
	if err != nil || r.State == journal.Ended {
		return heard, err
	}
	if r.Parent != "" {
		return heard, s.underParent(ctx, r)
	}
	unheard, err := s.store.Inbox(ctx, run)
	if err != nil {
		return heard, err
	}
	if len(unheard) == 0 {
		parks, err := s.parksSince(ctx, r)
		if err == nil && !parks {
			parks, err = s.toldBelow(ctx, r)
		}
		if err != nil || !parks {
			return heard, err
		}
	}
	err = s.takeUp(run)
	_, held := errors.AsType[*journal.HeldError](err)
	switch {
	case held:
		return waiting, nil
	case errors.Is(err, journal.ErrEnded):
		return heard, nil
	case err != nil:
		return heard, err
	}
	return driving, nil
}

// underParent says how a child goes on: by itself where a process drives its
// tree, and else when that is resumed.
func (s *Server) underParent(ctx context.Context, child journal.Run) error {
	root, err := s.store.Run(ctx, child.Root)
	if err != nil || control.Alive(root, time.Now()) {
		return err
	}
	return &engine.ChildError{Run: child.ID, Parent: child.Parent, Root: child.Root}
}

// toldBelow reports whether a run has parked for runs below it, and those have been told
// what they wait for.
func (s *Server) toldBelow(ctx context.Context, r journal.Run) (bool, error) {
	standing, err := s.controller.RunStatus(ctx, r)
	return standing.Answered || standing.Expired, err
}

// parksSince reports whether a run has parked and that something was said to it after
// that.
func (s *Server) parksSince(ctx context.Context, r journal.Run) (bool, error) {
	if r.State != journal.Parked && r.State != journal.Paused {
		return false, nil
	}
	last, err := s.store.Records(ctx, r.ID, r.Seq-1, 1)
	return len(last) == 1 && last[0].Type != string(event.TypeRunParked), err
}

// replay opens the model that answers from a recorded run of this journal.
func (s *Server) replay(run string) (llm.Model, error) {
	calls, err := s.engine.Recording(s.running, run)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, fmt.Errorf("there is no run %q to replay", run)
	}
	if err != nil {
		return nil, err
	}
	return replay.New(run, calls, func(d replay.Difference) {
		s.log.Warn("a request differed from the recorded one", "run", run, "difference", d)
	}), nil
}
