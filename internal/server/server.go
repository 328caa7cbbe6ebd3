// Package server is Pawl over HTTP: runs are started, watched, decided about
// and continued by requests to one process on this machine.
//
// It is a client of the journal's events like every surface. What it drives
// itself it drives through the same engine as the command line; commands to
// runs of other processes go through their inboxes. Without
// tokens it is open to its own user alone, from this machine, and with or without
// them to no program that a run has started.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/journal"
)

// Options are what a server serves, and to whom.
type Options struct {
	Store  journal.Store
	Engine *engine.Engine
	// Controller sends commands to the runs of Store.
	Controller *control.Controller
	// Agents is the directory of the agents that can be run by name.
	Agents string
	// Launch is what every run is launched with.
	Launch launch.Options
	// User is the name of the server's own user.
	User string
	// Tokens is the file of the tokens that are needed.
	Tokens string
	// Token makes who sends it User, as an admin, from this machine only. It needs no
	// file.
	Token string
	// NoAuth serves every program of this machine without a token, as an admin.
	NoAuth bool
	// MaxBudget is how many USD an editor may set as the limit of a run whose file says
	// less; 0 leaves editors what the files say.
	MaxBudget float64
	// Hosts are names of the server beside its address.
	Hosts []string
	// TLS reports whether clients speak HTTPS to the server.
	TLS bool
	// Metrics are what the engine counts; nil counts requests alone.
	Metrics *signals.Metrics
	// Teardown ends the runs that the server drives when it stops, instead of parking
	// them.
	Teardown bool
	// OwnerGone says what becomes of runs whose owner is gone.
	OwnerGone OwnerGone
	// Connections are how many there may be at once, 0 for half as many as the process
	// may have descriptors.
	Connections int
	// Space returns how many bytes are free for the journal; nil for a journal that is on
	// no disk.
	Space func() (uint64, error)
	// Log receives refused and failed requests and the runs that could not go
	// on; nil drops that.
	Log *slog.Logger
}

// Server serves runs over HTTP. It is safe for concurrent use.
type Server struct {
	store      journal.Store
	engine     *engine.Engine
	controller *control.Controller
	files      directory
	launch     launch.Options
	user       event.Principal
	maxBudget  float64
	// keys are the tokens that are needed, nil where none is. wide reports whether other
	// machines are served.
	keys    *keyring
	wide    bool
	limiter limiter
	// underway are the requests with an Idempotency-Key that have no answer yet.
	underway sync.Map
	hosts    []string
	scheme   string
	log      *slog.Logger
	// router answers what the guard lets through; document says what there is.
	router   *http.ServeMux
	document func() (document, error)
	page     *web.Page
	// follower has the events of all runs for those who listen here.
	follower *follow.Follower
	views    views
	sockets  *sockets
	owners   *owners
	metrics  *signals.Metrics

	// running ends, with the cause goodbye, when the server closes: the runs that it
	// drives park then, or end.
	running context.Context
	stop    context.CancelCauseFunc
	goodbye error
	// connections are how many there may be at once.
	connections int64
	going       sync.WaitGroup
	// starts holds one element for each start that is under way.
	starts chan struct{}
	space  func() (uint64, error)
	// attended are the runs that are driven here, by their ids.
	attended sync.Map
}

// New returns a server. Close it, so that its runs park.
func New(o Options) (*Server, error) {
	switch {
	case !o.oneDoor():
		return nil, errors.New("server: give one of Tokens, Token and NoAuth")
	case o.User == "":
		return nil, errors.New("server: the user has no name")
	case o.Log == nil:
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		store: o.Store, engine: o.Engine, controller: o.Controller, files: directory{path: o.Agents, files: map[string]*known{}, older: map[[3]string]kinds.File{}}, launch: o.Launch,
		user: event.Principal{Name: o.User, Role: string(access.Admin), Proof: event.ProofUser}, wide: o.Tokens != "", log: o.Log,
		follower: o.Engine.Follower(), metrics: cmp.Or(o.Metrics, signals.NewMetrics()),
	}
	s.maxBudget, s.space, s.starts = o.MaxBudget, o.Space, make(chan struct{}, startsAtOnce)
	s.launch.Dir, s.launch.Replay = o.Agents, s.replay
	s.sockets, s.owners = newSockets(s), newOwners(s, o.OwnerGone)
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
	if s.keys != nil {
		s.going.Go(func() { s.keys.watch(s.running) })
	}
	return s, nil
}

// oneDoor reports whether the options say in exactly one way who is served.
func (o Options) oneDoor() bool {
	given := 0
	for _, way := range []bool{o.Tokens != "", o.Token != "", o.NoAuth} {
		if way {
			given++
		}
	}
	return given == 1
}

// Close parks the runs that this server drives, or ends them, ends the streams of its
// readers, and returns when no run is driven here any more. The journal and the
// engine stay open.
func (s *Server) Close() error {
	s.stop(s.goodbye)
	s.going.Wait()
	return nil
}

// Handler answers all requests, also those that it refuses.
func (s *Server) Handler() http.Handler { return s.recovered(s.guarded(s.router)) }

// recovered answers a request whose handler panicked, instead of tearing its
// connection off.
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

// wellbeing is how the server is.
type wellbeing struct {
	Status string `json:"status"`
}

func (s *Server) health(*asked[none, none]) (wellbeing, error) { return wellbeing{"ok"}, nil }

// ready says that the journal can be read and written, and that the server is
// not closing. To give up a lease that nobody has is a commit that changes
// nothing: a journal whose disk failed, or whose file is not there any more,
// refuses it like every other.
func (s *Server) ready(a *asked[none, none]) (wellbeing, error) {
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

// leastSpace is how many bytes must be free for the journal: runs that write at once
// fill less than that between two looks at /readyz.
const leastSpace = 64 << 20

// unready is why the journal is of no use now.
func (s *Server) unready(err error, how string) error {
	s.log.Warn("not ready", "error", err)
	if p := problemOf(err); p.Status == http.StatusServiceUnavailable {
		return p
	}
	return kindUnavailable.problem("look at the journal with 'pawl doctor'", "the journal cannot be %s: %s", how, control.Plain(err))
}
