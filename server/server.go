// Package server is Pawl over HTTP: runs are started, watched, decided about
// and continued by requests to one process on this machine.
//
// It is a client of the journal's events like every surface. What it drives
// itself it drives through the same engine as the command line; commands to
// runs of other processes go through their inboxes. It has no tokens yet, so it
// is open to its own user alone, from this machine, and to no program that a
// run has started.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
)

// Options are what a server serves, and to whom.
type Options struct {
	Store  journal.Store
	Engine *engine.Engine
	// Desk sends commands to the runs of Store.
	Desk *control.Desk
	// Agents is the directory of the agents that can be run by name.
	Agents string
	// Launch is what every run is launched with.
	Launch launch.Options
	// User is who asks, as far as records are concerned: "http:" and this name.
	User string
	// Admit says who may speak to the server; see [OwnUser].
	Admit Admit
	// Log hears of refused and failed requests and of runs that could not go
	// on; nil drops that.
	Log *slog.Logger
}

// Server serves runs over HTTP. It is safe for concurrent use.
type Server struct {
	store  journal.Store
	engine *engine.Engine
	desk   *control.Desk
	agents directory
	launch launch.Options
	by     string
	admit  Admit
	log    *slog.Logger

	// running ends, with [engine.ErrInterrupted], when the server closes: the
	// runs that it drives park then.
	running context.Context
	stop    context.CancelCauseFunc
	going   sync.WaitGroup
}

// New returns a server. Close it, so that its runs park.
func New(o Options) (*Server, error) {
	switch {
	case o.Admit == nil:
		return nil, errors.New("server: nobody is admitted")
	case o.User == "":
		return nil, errors.New("server: the user has no name")
	case o.Log == nil:
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		store: o.Store, engine: o.Engine, desk: o.Desk, agents: directory{path: o.Agents}, launch: o.Launch,
		by: "http:" + o.User, admit: o.Admit, log: o.Log,
	}
	s.launch.Dir, s.launch.Replay = o.Agents, s.replay
	s.running, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// Close parks the runs that this server drives, ends the streams of its
// readers, and returns when no run is driven here any more. The journal and the
// engine stay open.
func (s *Server) Close() error {
	s.stop(engine.ErrInterrupted)
	s.going.Wait()
	return nil
}

// Handler answers all requests, also those that it refuses.
func (s *Server) Handler() http.Handler { return s.recovered(s.guarded(s.routes())) }

// routes are the paths of this server, each with its methods.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for path, methods := range map[string]map[string]handler{
		"/healthz":                {http.MethodGet: s.health},
		"/readyz":                 {http.MethodGet: s.ready},
		"/v1/agents":              {http.MethodGet: s.listAgents},
		"/v1/approvals":           {http.MethodGet: s.listApprovals},
		"/v1/runs":                {http.MethodGet: s.listRuns, http.MethodPost: s.startRun},
		"/v1/runs/{id}":           {http.MethodGet: s.showRun},
		"/v1/runs/{id}/events":    {http.MethodGet: s.events},
		"/v1/runs/{id}/approvals": {http.MethodGet: s.showApprovals},
		"/v1/runs/{id}/approve":   {http.MethodPost: s.approve},
		"/v1/runs/{id}/reject":    {http.MethodPost: s.reject},
		"/v1/runs/{id}/cancel":    {http.MethodPost: s.cancel},
		"/v1/runs/{id}/pause":     {http.MethodPost: s.pause},
		"/v1/runs/{id}/resume":    {http.MethodPost: s.resume},
		"/v1/runs/{id}/input":     {http.MethodPost: s.input},
	} {
		s.route(mux, path, methods)
	}
	mux.Handle("/", s.handle(func(_ http.ResponseWriter, r *http.Request) error {
		return kindNotFound.problem("the paths of this server are those of 'pawl serve --help'", "there is nothing at %s", r.URL.Path)
	}))
	return mux
}

// handler answers a request, or returns why it cannot.
type handler func(w http.ResponseWriter, r *http.Request) error

func (s *Server) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// route serves a path; a method that it does not take is told which it does.
func (s *Server) route(mux *http.ServeMux, path string, methods map[string]handler) {
	var allowed string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if h, ok := methods[method]; ok {
			mux.Handle(method+" "+path, s.handle(h))
			if allowed != "" {
				allowed += ", "
			}
			allowed += method
		}
	}
	mux.Handle(path, s.handle(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return kindMethod.problem("use "+allowed, "%s takes no %s", r.URL.Path, r.Method)
	}))
}

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

func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	s.answer(w, r, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// ready says that the journal can be read and written, and that the server is
// not closing. To give up a lease that nobody has is a commit that changes
// nothing: a journal whose disk failed, or whose file is not there any more,
// refuses it like every other.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.running.Err() != nil {
		return context.Cause(s.running)
	}
	if _, err := s.store.Runs(r.Context(), journal.Filter{Limit: 1}); err != nil {
		return s.unready(err, "read")
	}
	if err := s.store.Release(r.Context(), journal.Lease{}); err != nil {
		return s.unready(err, "written")
	}
	s.answer(w, r, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}

// unready is why the journal is of no use now.
func (s *Server) unready(err error, how string) error {
	s.log.Warn("not ready", "error", err)
	if p := problemOf(err); p.Status == http.StatusServiceUnavailable {
		return p
	}
	return kindUnavailable.problem("look at the journal with 'pawl doctor'", "the journal cannot be %s: %s", how, control.Plain(err))
}
