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
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
)

// start creates a run with an id and drives it until it ends, parks, or the server
// closes.
func (s *Server) start(id string, started event.RunStarted, env perform.Env) error {
	if s.dispatcher != nil { // the worker's place
		started.Place, started.Workspace = event.Place{}, ""
		return s.queue(s.running, id, started, env)
	}
	r, err := s.engine.StartAs(s.running, id, started, env)
	if err != nil {
		return err
	}
	s.owners.keep(r.ID, started)
	s.attend(r)
	return nil
}

// resumeRun resumes a run. It sets a run aside whose files are on another machine, for a
// worker there.
func (s *Server) resumeRun(run string) error {
	if s.dispatcher != nil {
		return s.redispatch(s.running, run)
	}
	if err := s.settle(s.running, run); err != nil {
		return err
	}
	var first event.RunStarted
	r, err := s.engine.Resume(s.running, run, func(started event.RunStarted) (perform.Env, error) {
		first = started
		started, err := s.published.local(s.running, started)
		if err != nil {
			return perform.Env{}, err
		}
		env, err := kinds.Resume(started, s.launch)
		if errors.Is(err, workplace.ErrElsewhere) {
			return env, err
		}
		if errors.Is(err, launch.ErrNoFile) {
			return env, problemOf(err).about(run, "")
		}
		if err != nil {
			return env, kindCannotGo.problem("fix what is missing, then POST /v1/runs/"+run+"/resume", "%s", control.Plain(err)).about(run, "")
		}
		return env, nil
	})
	if errors.Is(err, workplace.ErrElsewhere) {
		return s.setAside(s.running, run, first.Place)
	}
	if err != nil {
		return err
	}
	s.owners.keep(run, first)
	s.attend(r)
	return nil
}

// takenUp is how long an answer waits for the first event of a resumed run, which
// normally arrives within milliseconds.
const takenUp = 2 * time.Second

// moved returns a run's row once it has an event after seq, or when ctx ends.
func (s *Server) moved(ctx context.Context, run string, seq int64) (journal.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, takenUp)
	defer cancel()
	return s.until(ctx, run, func(row journal.Run) bool { return row.Seq > seq })
}

// until returns a run's row once it satisfies so, or when ctx ends.
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

// attend waits for a run in the background. The journal records how the run ended;
// errors beyond that go to the log.
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

// ensureContinues makes sure that a parked run continues with a command that was just sent:
// its driver may be stopping, or belong to another process. It returns the run's
// row once the run is driven here or a driver elsewhere has read the command. If
// neither happens soon, goOn continues in the background.
func (s *Server) ensureContinues(ctx context.Context, run string) (journal.Run, error) {
	before, err := s.store.Run(ctx, run)
	if err != nil {
		return before, err
	}
	next, err := s.tryContinue(ctx, run)
	switch {
	case err != nil:
		return before, err
	case next == driving:
		return s.moved(ctx, run, before.Seq)
	case next == waiting:
		s.going.Go(func() { s.retryContinue(run) })
	}
	return before, nil
}

// retryContinue retries whenever the journal changes and when the driver of this
// process has left, until the run continues or its driver has read the command.
func (s *Server) retryContinue(run string) {
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
		next, err := s.tryContinue(s.running, run)
		if err != nil {
			s.log.Error("run does not go on", "run", run, "error", err)
		}
		if err != nil || next != waiting {
			return
		}
	}
}

// left is closed when the driver that this process has for the run has left; it is nil
// if there is none.
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

// progress is how far a run has taken a command.
type progress int

const (
	// received: the run's driver has read the command, or the run has ended, or it has
	// parked again since.
	received progress = iota
	// driving: this server resumed the run.
	driving
	// waiting: the run's driver has not read all commands yet.
	waiting
)

// tryContinue resumes a run that parked, or that its process left, before it read the
// newest command.
func (s *Server) tryContinue(ctx context.Context, run string) (progress, error) {
	r, err := s.store.Run(ctx, run)
	if err != nil || r.State == journal.Ended {
		return received, err
	}
	if r.Parent != "" {
		return received, s.underParent(ctx, r)
	}
	unheard, err := s.store.Inbox(ctx, run)
	if err != nil {
		return received, err
	}
	if len(unheard) == 0 {
		// The driver that took the command out may have left since the row was read.
		if r, err = s.store.Run(ctx, run); err != nil {
			return received, err
		}
		parks, err := s.parksSince(ctx, r)
		if err == nil && !parks {
			parks, err = s.childrenAnswered(ctx, r)
		}
		if err != nil || !parks {
			return received, err
		}
	}
	// A driver that leaves gives up the lease before the workspace.
	_, leaving := s.attended.Load(run)
	err = s.resumeRun(run)
	_, held := errors.AsType[*journal.HeldError](err)
	switch {
	case held, err != nil && leaving:
		return waiting, nil
	case errors.Is(err, journal.ErrEnded):
		return received, nil
	case err != nil:
		return received, err
	}
	return driving, nil
}

// underParent decides how a child continues: by itself if a process drives its
// tree, or else when the tree is resumed.
func (s *Server) underParent(ctx context.Context, child journal.Run) error {
	root, err := s.store.Run(ctx, child.Root)
	if err != nil || control.Alive(root, time.Now()) {
		return err
	}
	return &engine.ChildError{Run: child.ID, Parent: child.Parent, Root: child.Root}
}

// childrenAnswered reports whether a run has parked for its children, and these
// have received what they wait for.
func (s *Server) childrenAnswered(ctx context.Context, r journal.Run) (bool, error) {
	status, err := s.controller.RunStatus(ctx, r)
	return status.Answered || status.Expired, err
}

// parksSince reports whether a run is parked and received a command after it
// parked.
func (s *Server) parksSince(ctx context.Context, r journal.Run) (bool, error) {
	if r.State != journal.Parked && r.State != journal.Paused {
		return false, nil
	}
	for last, err := range drive.Since(ctx, s.store, r.ID, r.Seq-1, func(t event.Type) bool { return t != event.TypeRunParked }) {
		return err == nil && last.Seq == r.Seq, err
	}
	return false, nil
}

// replay opens the model that answers from a recorded run of this journal.
func (s *Server) replay(run string) (llm.Model, error) {
	calls, err := s.engine.Past().Recording(s.running, run)
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
