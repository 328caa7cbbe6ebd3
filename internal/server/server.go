// Package server serves Pawl over HTTP: requests to one process on this machine
// start, watch, decide and continue runs.
//
// Like every surface, it is a client of the journal's events. It drives runs with
// the same engine as the command line; commands to runs of other processes go
// through their inboxes. Without tokens it is open only to its own user, from this
// machine. With or without tokens it is never open to a program that a run has
// started.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/published"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server/peer"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/internal/tenants"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/journal"
)

// Options configures a server.
type Options struct {
	Store  journal.Store
	Engine *engine.Engine
	// Dispatcher has the runs driven by workers; nil lets the server drive them.
	Dispatcher Dispatcher
	// Controller sends commands to the runs of Store.
	Controller *control.Controller
	// Agents is the directory of the files that can be run by name.
	Agents string
	// Published mirrors the files that the servers of a shared journal offer in place of
	// those of Agents, once there are any; nil for a journal that is not shared.
	Published *published.Mirror
	// Launch holds the options of every run.
	Launch launch.Options
	// User is the name of the server's own user.
	User string
	// Tokens is the file of the valid tokens.
	Tokens string
	// Token identifies its sender as User, an admin, from this machine only. It
	// needs no file.
	Token string
	// NoAuth serves every program of this machine without a token, as an admin.
	NoAuth bool
	// MaxBudget is the most USD that an editor may set for a run whose file has a
	// lower cap; 0 limits editors to the files' caps.
	MaxBudget float64
	// Budgets bounds what the runs of a token spend together; nil bounds nothing.
	Budgets *tenants.Budgets
	// Hosts lists names of the server besides its address.
	Hosts []string
	// TLS reports whether clients speak HTTPS to the server.
	TLS bool
	// PeerURL is the URL at which the other servers of a shared journal reach this one;
	// empty stands for the address that it listens on.
	PeerURL string
	// Metrics holds the engine's metrics; nil counts only requests.
	Metrics *signals.Metrics
	// Teardown ends the server's runs when it stops, instead of parking them.
	Teardown bool
	// OwnerGone is what happens to the runs of a disconnected owner.
	OwnerGone OwnerGone
	// Connections bounds the open connections, 0 for half of the process's
	// descriptors.
	Connections int
	// Space returns the free bytes of the journal's disk; nil for a journal without
	// a disk.
	Space func() (uint64, error)
	// Log receives refused and failed requests and runs that could not continue;
	// nil discards them.
	Log *slog.Logger
}

// Server serves runs over HTTP. It is safe for concurrent use.
type Server struct {
	store      journal.Store
	engine     *engine.Engine
	dispatcher Dispatcher
	controller *control.Controller
	files      directory
	published  *publications
	launch     launch.Options
	user       event.Principal
	maxBudget  float64
	budgets    *tenants.Budgets
	// keys holds the valid tokens, nil if none is needed. wide reports whether
	// other machines are served.
	keys    *keyring
	wide    bool
	limiter limiter
	// underway holds the unanswered requests with an Idempotency-Key.
	underway sync.Map
	hosts    []string
	scheme   string
	log      *slog.Logger
	// router answers requests that passed the guard; document describes them.
	router   *http.ServeMux
	document func() (document, error)
	page     *web.Page
	// peer passes live events between the servers of the journal, and peerURL is where
	// the others reach this one.
	peer    *peer.Peer
	peerURL string
	full    atomic.Bool
	// follower publishes the events of all runs to the readers of this server.
	follower *follow.Follower
	views    drive.Recent[foldedRun]
	removals removals
	sockets  *sockets
	owners   *ownerTracker
	metrics  *signals.Metrics

	// running ends, with the cause goodbye, when the server closes; its runs then
	// park or end.
	running context.Context
	stop    context.CancelCauseFunc
	goodbye error
	// connections bounds the open connections.
	connections int64
	going       sync.WaitGroup
	// starts holds one element for each start in progress.
	starts chan struct{}
	// clones holds one element for each clone in progress.
	clones chan struct{}
	space  func() (uint64, error)
	// attended holds the runs that this server drives, by id.
	attended sync.Map
}

// New returns a server. Close it, so that its runs park.
func New(o Options) (*Server, error) {
	switch {
	case !o.oneAuthentication():
		return nil, errors.New("server: give one of Tokens, Token and NoAuth")
	case o.User == "":
		return nil, errors.New("server: the user has no name")
	case o.Log == nil:
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		store: o.Store, engine: o.Engine, dispatcher: o.Dispatcher, controller: o.Controller, files: directory{path: o.Agents, files: map[string]*known{}, older: map[[3]string]kinds.File{}}, launch: o.Launch,
		budgets: o.Budgets, user: event.Principal{Name: o.User, Role: string(access.Admin), Proof: event.ProofUser}, wide: o.Tokens != "", log: o.Log,
		follower: o.Engine.Follower(), views: drive.Recent[foldedRun]{Most: keptViews}, metrics: cmp.Or(o.Metrics, signals.NewMetrics()),
	}
	s.peer, s.peerURL = peer.New(peer.Options{Store: o.Store, Follower: s.follower, Owner: o.Engine.Owner(), Go: s.going.Go, Log: o.Log}), o.PeerURL
	if s.published = (&publications{mirror: o.Published}); o.Published != nil {
		o.Published.Store = o.Store
		if err := s.published.offer(&s.files); err != nil {
			return nil, err
		}
	}
	s.maxBudget, s.space = o.MaxBudget, o.Space
	s.starts, s.clones = make(chan struct{}, startsAtOnce), make(chan struct{}, clonesAtOnce)
	s.launch.Dir, s.launch.Replay = o.Agents, s.replay
	s.sockets, s.owners = newSockets(s), &ownerTracker{server: s, OwnerGone: o.OwnerGone, of: map[ownerID]*owner{}}
	var err error
	if s.page, err = web.Load(); err != nil {
		return nil, err
	}
	if s.router, err = s.routes(operations()); err != nil {
		return nil, err
	}
	s.document = sync.OnceValues(func() (document, error) { return documentOf(operations()) })
	s.limiter.left, s.hosts, s.scheme = map[string]*allowance{}, o.Hosts, "http"
	if o.TLS {
		s.scheme = "https"
	}
	switch {
	case o.Tokens != "":
		if s.keys, err = newKeyring(o.Tokens, o.Log); err != nil {
			return nil, err
		}
	case o.Token != "":
		s.keys = keyringOf(tokens.EntryOf(o.User, access.Admin, o.Token))
	}
	s.connections = cmp.Or(int64(o.Connections), mostConnections())
	if s.goodbye = engine.ErrInterrupted; o.Teardown {
		s.goodbye = errTornDown
	}
	s.running, s.stop = context.WithCancelCause(context.Background())
	s.going.Go(func() {
		<-s.running.Done()
		s.sockets.sessions.Close()
	})
	s.going.Go(func() { s.published.watch(s.running, s) })
	if s.keys != nil {
		s.going.Go(func() { s.keys.watch(s.running) })
	}
	return s, nil
}

// oneAuthentication reports whether exactly one option sets how clients authenticate.
func (o Options) oneAuthentication() bool {
	given := 0
	for _, way := range []bool{o.Tokens != "", o.Token != "", o.NoAuth} {
		if way {
			given++
		}
	}
	return given == 1
}

// Close parks or ends the runs that this server drives, ends the streams of its
// readers, and returns when it no longer drives any run. The journal and the engine
// stay open.
func (s *Server) Close() error {
	s.stop(s.goodbye)
	s.going.Wait()
	return nil
}

// Handler answers all requests, including those that it refuses.
func (s *Server) Handler() http.Handler {
	guarded, live := s.guarded(s.router), s.limited(s.peer)
	return s.recovered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == peer.Path {
			live.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}))
}

// recovered answers a request whose handler panicked, instead of closing its
// connection.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.fail(w, r, kindInternal.problem("please report this", "internal error: %v", p))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// wellbeing is the health of the server.
type wellbeing struct {
	Status string `json:"status"`
}

func (s *Server) health(*apiRequest[none, none]) (wellbeing, error) { return wellbeing{"ok"}, nil }

// ready reports that the journal is readable and writable, and that the server is
// not closing. Releasing a lease that no process holds is a commit without a
// change: a journal whose disk failed, or whose file is gone, refuses it like any
// other commit.
func (s *Server) ready(a *apiRequest[none, none]) (wellbeing, error) {
	if s.running.Err() != nil {
		return wellbeing{}, context.Cause(s.running)
	}
	if _, err := s.store.Runs(a.Context(), journal.Filter{Limit: 1}); err != nil {
		return wellbeing{}, s.unready(err, "read")
	}
	if err := s.store.Release(a.Context(), journal.Lease{}); err != nil {
		return wellbeing{}, s.unready(err, "written")
	}
	if s.space == nil {
		return wellbeing{"ready"}, nil
	}
	free, err := s.space()
	if err != nil {
		return wellbeing{}, s.unready(err, "measured")
	}
	if free < leastSpace {
		return wellbeing{}, kindUnavailable.problem("free some space; nothing in the journal is lost", "the disk of the journal has %d MiB free, and runs need %d MiB", free>>20, leastSpace>>20)
	}
	return wellbeing{"ready"}, nil
}

// leastSpace is how many free bytes the journal needs: concurrent runs write less
// than that between two requests for /readyz.
const leastSpace = 64 << 20

// unready returns why the journal cannot be used.
func (s *Server) unready(err error, how string) error {
	s.log.Warn("not ready", "error", err)
	if p := problemOf(err); p.Status == http.StatusServiceUnavailable {
		return p
	}
	return kindUnavailable.problem("look at the journal with 'pawl doctor'", "the journal cannot be %s: %s", how, control.Plain(err))
}
