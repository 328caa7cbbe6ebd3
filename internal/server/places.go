package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/journal"
)

// workerAgain is how often a server checks whether there is a worker for a run that it
// cannot drive.
const workerAgain = 2 * time.Second

// driver returns what the server registers in the journal.
func (s *Server) driver() journal.Driver {
	d := journal.Driver{Owner: s.engine.Owner(), Host: s.launch.Here.Host, Labels: s.launch.Here.Labels}
	if s.peerURL != "" {
		d.Addr, d.Key = strings.TrimRight(s.peerURL, "/"), s.peer.Key()
	}
	return d
}

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

// placeOf returns the place of a root run.
func (s *Server) placeOf(ctx context.Context, run string) (event.Place, error) {
	started, err := drive.At[event.RunStarted](ctx, s.store, run, 0)
	if err != nil {
		return event.Place{}, fmt.Errorf("the place of run %s: %w", run, err)
	}
	return started.Place, nil
}

// setAside writes into the row of a run whose place is elsewhere what worker it waits
// for. A worker that has the place takes it.
func (s *Server) setAside(ctx context.Context, run string, p event.Place) error {
	waits := journal.WaitNoWorker + p.String()
	if drivers, may := s.store.(journal.KeepsDrivers); may {
		live, err := drivers.Drivers(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(live, func(d journal.Driver) bool { return workplace.Matches(p, d.Host, d.Labels) }) {
			waits = journal.WaitWorker + p.String()
		}
	}
	row, err := s.store.Run(ctx, run)
	if err != nil || row.WaitsForWorker() && row.Detail == waits {
		return err
	}
	return s.engine.SetAside(ctx, run, waits)
}

// beginAt sets the workspace of a run that starts in p. elsewhere reports that it is not
// on this machine; the run is then prepared in an empty directory that done removes.
func (s *Server) beginAt(ctx context.Context, p event.Place, run string, l *launch.Options) (at event.Place, elsewhere bool, done func(), err error) {
	done = func() {}
	if s.dispatcher != nil { // every worker, or each with the label, may drive it in the directory of its own
		if p.Host != "" || p.Repo != "" {
			err = kindAgent.problem("name a label that a worker has, or leave it out, or start the run at a server without --temporal", "a run that Temporal places cannot name a host or a repository").at("/workspace")
		}
		return p, false, done, err
	}
	at, l.Workspace, err = l.Here.Begin(ctx, p, run, l.Workspace)
	if !errors.Is(err, workplace.ErrElsewhere) {
		if err != nil {
			err = kindAgent.problem("name another place, or a repository and a ref that exist", "%v", err).at("/workspace")
		}
		return at, false, done, err
	}
	if l.Workspace, err = os.MkdirTemp("", "pawl-elsewhere-"); err != nil {
		return at, true, done, err
	}
	empty := l.Workspace
	return at, true, func() { _ = os.RemoveAll(empty) }, nil
}

// queue creates a run that another server drives.
func (s *Server) queue(ctx context.Context, id string, started event.RunStarted, env perform.Env) error {
	started.Workspace = ""
	if err := assembly.Closing(env, nil); err != nil {
		return err
	}
	if err := s.engine.Create(ctx, id, started, env.Secrets); err != nil {
		return err
	}
	return s.setAside(ctx, id, started.Place)
}
