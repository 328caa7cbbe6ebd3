package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/journal"
)

// workerAgain is how often a server checks whether there is a worker for a run that it
// cannot drive.
const workerAgain = 2 * time.Second

// driver returns what the server registers in the journal.
func (s *Server) driver() journal.Driver {
	d := journal.Driver{Owner: s.engine.Owner(), Host: s.launch.Here.Host, Labels: s.launch.Here.Labels, Full: s.full.Load()}
	if s.peerURL != "" {
		d.Addr, d.Key = strings.TrimRight(s.peerURL, "/"), s.peer.Key()
	}
	return d
}

// SetFull sets whether the server takes no more runs, which the lists of runs show from its
// next registration on.
func (s *Server) SetFull(full bool) { s.full.Store(full) }

// reachable sets the URL of a server that listens on an address, unless its options have
// one. A server that listens on all addresses is reached by the name of its machine.
func (s *Server) reachable(at net.Addr) {
	tcp, is := at.(*net.TCPAddr)
	if s.peerURL != "" || !is {
		return
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		name, err := os.Hostname()
		if err != nil {
			return
		}
		host = name
	}
	s.peerURL = s.scheme + "://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

func (s *Server) unregistered(err error) {
	s.log.Warn("the other servers of the journal do not know of this one", "error", err)
}

// live returns the processes that drive runs of the journal.
func (s *Server) live(ctx context.Context) ([]journal.Driver, error) {
	if drivers, may := s.store.(journal.KeepsDrivers); may {
		return drivers.Drivers(ctx)
	}
	return nil, nil
}

// waitsFor returns the worker that a run waits for whose place is p.
func waitsFor(live []journal.Driver, p event.Place) string {
	if slices.ContainsFunc(live, func(d journal.Driver) bool { return workplace.Matches(p, d.Host, d.Labels) }) {
		return journal.WaitWorker + p.String()
	}
	return journal.WaitNoWorker + p.String()
}

// setAside records which worker a run waits for that is not driven here. A worker that has
// the place takes the run.
func (s *Server) setAside(ctx context.Context, run string, p event.Place) error {
	live, err := s.live(ctx)
	if err != nil {
		return err
	}
	row, err := s.store.Run(ctx, run)
	if err != nil {
		return err
	}
	return s.setAsideFor(ctx, row, waitsFor(live, p))
}

func (s *Server) setAsideFor(ctx context.Context, row journal.Run, worker string) error {
	if row.WaitsForWorker() && row.Detail == worker {
		return nil
	}
	return s.engine.Place(ctx, row.ID, func(_ context.Context, now *journal.Run) ([]event.Data, error) {
		if now.Seq == row.Seq { // no worker has driven it meanwhile
			now.State, now.Detail = journal.Waiting, worker
		}
		return nil, nil
	})
}

// settle records that a run works on this machine, if no process has driven the run yet
// and its place is open. It clones the run's repository, if it names one, and ends the run
// if that fails.
func (s *Server) settle(ctx context.Context, run string) error {
	settles := func(ctx context.Context) (started event.RunStarted, settles bool, err error) {
		started, fresh, err := drive.Began(ctx, s.store, run)
		return started, fresh && s.launch.Here.Settles(started.Place, started.Workspace), err
	}
	if _, first, err := settles(ctx); err != nil || !first {
		return err
	}
	return s.engine.Place(ctx, run, func(ctx context.Context, row *journal.Run) ([]event.Data, error) {
		started, first, err := settles(ctx)
		if err != nil || !first { // another process was faster
			return nil, err
		}
		placed, err := s.launch.Here.Settle(ctx, started.Place, run)
		if failed, is := errors.AsType[*workplace.CloneError](err); is {
			s.log.Warn("a run cannot begin", "run", run, "error", failed)
			return endUnplaced(&row.Progress, failed)
		}
		if err != nil {
			return nil, err
		}
		if row.WaitsForWorker() {
			row.Detail = journal.WaitWorker + started.Placed(placed).Place.String()
		}
		return []event.Data{placed}, nil
	})
}

// endUnplaced ends a run that has done nothing, because it cannot get its workspace.
func endUnplaced(row *journal.Progress, cause error) (events []event.Data, err error) {
	o := event.Outcome{
		Status: event.StatusFailed, Reason: event.ReasonNoWorkspace, Error: &event.Failure{Class: "workspace", Message: cause.Error()},
		NextSafeAction: "Nothing was done. Correct the repository or the ref, or give the workers access to it, then start another run.",
	}
	*row = journal.Progress{State: journal.Ended, Detail: string(o.Reason)}
	row.Outcome, err = json.Marshal(o)
	return []event.Data{event.RunTerminatedBy{Reason: o.Reason, Error: o.Error}, event.RunCompleted{Outcome: o}}, err
}

// clonesAtOnce bounds the clones that a server makes at once for the runs that it takes.
const clonesAtOnce = 4

// begin makes the clone of a run and resumes it, in the background. It does nothing if
// the server makes as many as it may: the run is looked at again.
func (s *Server) begin(run string) {
	select {
	case s.clones <- struct{}{}:
	default:
		return
	}
	s.going.Go(func() {
		defer func() { <-s.clones }()
		err := s.resumeRun(run)
		_, held := errors.AsType[*journal.HeldError](err)
		if err != nil && !held && !errors.Is(err, journal.ErrEnded) && s.running.Err() == nil {
			s.log.Error("a run does not begin", "run", run, "error", err)
		}
	})
}

// beginAt sets the workspace of a run that starts in p. elsewhere reports that another
// process may drive the run first, which then decides where it works. The run is prepared
// in an empty directory then, which done removes.
func (s *Server) beginAt(p event.Place, l *launch.Options) (at event.Place, elsewhere bool, done func(), err error) {
	done = func() {}
	if s.dispatcher == nil && p.Repo == "" {
		if p.Label == "" {
			p.Host = cmp.Or(p.Host, l.Here.Host)
		}
		dir, err := l.Here.Dir(p, l.Workspace)
		if !errors.Is(err, workplace.ErrElsewhere) {
			l.Workspace = dir
			return p, false, done, err
		}
	}
	empty, err := os.MkdirTemp("", "pawl-elsewhere-")
	l.Workspace = empty
	return p, true, func() { _ = os.RemoveAll(empty) }, err
}

// queue creates a run for the first worker that has its place. The run's directory is
// known only if it continues another run.
func (s *Server) queue(ctx context.Context, id string, started event.RunStarted, env perform.Env) error {
	err := s.engine.Queue(ctx, id, started, env.Secrets)
	if err = errors.Join(err, env.Release()); err != nil {
		return err
	}
	s.owners.keep(id, started)
	if started.Place != (event.Place{}) {
		if err := s.setAside(ctx, id, started.Place); err != nil {
			s.log.Warn("a queued run does not say what worker it waits for", "run", id, "error", err)
		}
	}
	if s.dispatcher == nil {
		if s.launch.Here.Has(started.Place) {
			s.begin(id)
		}
		return nil
	}
	if err := s.dispatcher.Dispatch(ctx, id, false); err != nil {
		s.log.Warn("a queued run is dispatched later", "run", id, "error", err)
	}
	return nil
}
