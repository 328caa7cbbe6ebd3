package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// OwnerGone says what becomes of the runs of somebody who has been gone for Grace: of
// whom no socket and no stream has been open for so long.
type OwnerGone struct {
	// Sockets is for what was started over Socket.IO, HTTP for the rest; empty for
	// nothing.
	Sockets, HTTP event.OwnerGone
	Grace         time.Duration
}

// owners are those who started what this server drives, or drove last. What becomes of
// a run is in its journal; here is only who is connected to this server.
type owners struct {
	server *Server
	OwnerGone

	mu sync.Mutex
	of map[ownerID]*owner
}

// ownerID is who somebody is, in whatever role.
type ownerID struct {
	name  string
	proof event.Proof
}

// owner is somebody who is connected, or has runs here.
type owner struct {
	connections int
	// runs are what becomes of those of which something does.
	runs map[string]event.OwnerGone
	// gone is when that happens, nil while the owner is here.
	gone *time.Timer
}

func newOwners(s *Server, o OwnerGone) *owners {
	return &owners{server: s, OwnerGone: o, of: map[ownerID]*owner{}}
}

// own has a run be that of who asks for it.
func (o *owners) own(ctx context.Context, started *event.RunStarted) {
	started.Principal, started.OnOwnerDisconnect = principalOf(ctx), o.HTTP
	if ctx.Value(socketKey{}) != nil {
		started.OnOwnerDisconnect = o.Sockets
	}
}

func idOf(p event.Principal) ownerID { return ownerID{p.Name, p.Proof} }

// entry is what is known of somebody. The lock is held.
func (o *owners) entry(id ownerID) *owner {
	if o.of[id] == nil {
		o.of[id] = &owner{runs: map[string]event.OwnerGone{}}
	}
	return o.of[id]
}

// enter says that somebody has a connection more, until leave is called.
func (o *owners) enter(p event.Principal) (leave func()) {
	id := idOf(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	who := o.entry(id)
	who.connections++
	if who.gone != nil {
		who.gone.Stop()
		who.gone = nil
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if who.connections--; who.connections == 0 {
			o.expect(id, who)
		}
	}
}

// expect gives somebody who is gone the time to come back. The lock is held.
func (o *owners) expect(id ownerID, who *owner) {
	if len(who.runs) == 0 {
		delete(o.of, id)
		return
	}
	if who.gone == nil {
		who.gone = time.AfterFunc(o.Grace, func() { o.act(id) })
	}
}

// keep notes a run that is driven here from now on.
func (o *owners) keep(run string, started event.RunStarted) {
	if started.OnOwnerDisconnect == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry(idOf(started.Principal)).runs[run] = started.OnOwnerDisconnect
}

// miss counts the owner of a run that another server left, and who is not here, as
// gone since now.
func (o *owners) miss(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, who := range o.of {
		if who.runs[run] != "" && who.connections == 0 {
			o.expect(id, who)
		}
	}
}

// forget notes that a run has ended.
func (o *owners) forget(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, who := range o.of {
		delete(who.runs, run)
		if who.connections == 0 && len(who.runs) == 0 {
			if who.gone != nil {
				who.gone.Stop()
			}
			delete(o.of, id)
		}
	}
}

// act does what becomes of the runs of somebody who did not come back.
func (o *owners) act(id ownerID) {
	o.mu.Lock()
	who := o.of[id]
	if who == nil || who.gone == nil || o.server.running.Err() != nil {
		o.mu.Unlock()
		return
	}
	delete(o.of, id)
	o.mu.Unlock()
	for run, what := range who.runs {
		if err := o.end(id, run, what); err != nil {
			o.server.log.Error("a run goes on although its owner is gone", "run", run, "owner", id.name, "error", err)
		}
	}
}

// end parks or cancels a run.
func (o *owners) end(id ownerID, run string, what event.OwnerGone) error {
	s := o.server
	ctx, cancel := context.WithTimeout(s.running, patience)
	defer cancel()
	row, err := s.store.Run(ctx, run)
	if err != nil || row.State == journal.Ended {
		return err
	}
	c := journal.Command{Kind: journal.Cancel, Principal: s.user, By: "server", Text: fmt.Sprintf("its owner %s has been gone for %s", id.name, o.Grace)}
	if what == event.OwnerGonePark {
		if row.State == journal.Parked || row.State == journal.Paused {
			return nil
		}
		c.Kind, c.Text = journal.Pause, ""
	}
	s.log.Info("the owner of a run is gone", "run", run, "owner", id.name, "what", what)
	_, err = s.controller.Send(ctx, row, c)
	return err
}
