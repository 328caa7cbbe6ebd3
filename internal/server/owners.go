package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// OwnerGone is what happens to the runs of an owner that has been disconnected,
// without an open socket or stream, for Grace.
type OwnerGone struct {
	// Sockets applies to runs that were started over Socket.IO, HTTP to the others;
	// empty means nothing.
	Sockets, HTTP event.OwnerGone
	Grace         time.Duration
}

// ownerTracker tracks the owners of the runs that this server drives or drove last.
// The journal records what happens to a run; the tracker knows which owners are
// connected.
type ownerTracker struct {
	server *Server
	OwnerGone

	mu sync.Mutex
	of map[ownerID]*owner
}

// ownerID identifies an owner in any role.
type ownerID struct {
	name  string
	proof event.Proof
}

// owner is a principal that is connected or has runs here.
type owner struct {
	connections int
	// runs holds the runs on which a disconnect has an effect.
	runs map[string]event.OwnerGone
	// gone fires after the grace period, nil while the owner is connected.
	gone *time.Timer
}

// own sets the owner of a run to the request's principal.
func (o *ownerTracker) own(ctx context.Context, started *event.RunStarted) {
	started.Principal, started.OnOwnerDisconnect = principalOf(ctx), o.HTTP
	if ctx.Value(socketKey{}) != nil {
		started.OnOwnerDisconnect = o.Sockets
	}
}

func idOf(p event.Principal) ownerID { return ownerID{p.Name, p.Proof} }

// entry returns the record of an owner. The caller holds the lock.
func (o *ownerTracker) entry(id ownerID) *owner {
	if o.of[id] == nil {
		o.of[id] = &owner{runs: map[string]event.OwnerGone{}}
	}
	return o.of[id]
}

// enter counts a connection of a principal until leave is called.
func (o *ownerTracker) enter(p event.Principal) (leave func()) {
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

// expect starts the grace period of a disconnected owner. The caller holds the
// lock.
func (o *ownerTracker) expect(id ownerID, who *owner) {
	if len(who.runs) == 0 {
		delete(o.of, id)
		return
	}
	if who.gone == nil {
		who.gone = time.AfterFunc(o.Grace, func() { o.act(id) })
	}
}

// keep tracks a run that this server now drives.
func (o *ownerTracker) keep(run string, started event.RunStarted) {
	if started.OnOwnerDisconnect == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry(idOf(started.Principal)).runs[run] = started.OnOwnerDisconnect
}

// miss starts the grace period for the owner of a run that another server left, if
// the owner is not connected.
func (o *ownerTracker) miss(run string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, who := range o.of {
		if who.runs[run] != "" && who.connections == 0 {
			o.expect(id, who)
		}
	}
}

// forget removes an ended run.
func (o *ownerTracker) forget(run string) {
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

// act applies the effect of a disconnect after the grace period.
func (o *ownerTracker) act(id ownerID) {
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
func (o *ownerTracker) end(id ownerID, run string, what event.OwnerGone) error {
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
