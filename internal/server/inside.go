package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/journal"
)

// Caller is a principal of this process, and the surface that it uses, such as
// "mcp".
type Caller struct {
	event.Principal
	Surface string
}

// By names the caller in a run's journal.
func (c Caller) By() string { return c.Surface + ":" + c.Name }

// surfaceKey is the context key of the surface of a request; a request without one
// came over HTTP.
type surfaceKey struct{}

// Request is a request from another surface of this process.
type Request struct {
	Method, Path string
	// Body is encoded as JSON; nil sends none.
	Body   any
	Header http.Header
}

// Ask performs an operation of the table with the caller's role. The audit and the
// Idempotency-Key work as for a request over HTTP. It returns the body of the
// answer. The error is a [*Problem].
func (s *Server) Ask(ctx context.Context, c Caller, q Request) (json.RawMessage, error) {
	var body bytes.Buffer
	if q.Body != nil {
		if err := json.NewEncoder(&body).Encode(q.Body); err != nil {
			return nil, problemOf(err)
		}
	}
	ctx = context.WithValue(context.WithValue(ctx, principalKey{}, c.Principal), surfaceKey{}, c.Surface)
	r, err := http.NewRequestWithContext(ctx, q.Method, q.Path, &body)
	if err != nil {
		return nil, kindQuery.problem("name a path of /openapi.json", "%v", err)
	}
	if r.RemoteAddr = c.Surface; q.Header != nil {
		r.Header = q.Header
	}
	if q.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer := &answerRecorder{header: http.Header{}, status: http.StatusOK}
	s.recovered(s.router).ServeHTTP(answer, r)
	if answer.status < http.StatusBadRequest {
		return answer.body.Bytes(), nil
	}
	p := &Problem{}
	if err := json.Unmarshal(answer.body.Bytes(), p); err != nil {
		return nil, problemOf(err)
	}
	return nil, p
}

// Runnable is a file that can be run by name, with its input and result.
type Runnable struct {
	Name, Version, Description string
	// Kind is the kind of the file's runs.
	Kind string
	// Key is the key that names the file in the body of a start: agent or workflow.
	Key  string
	File string
	launch.Signature
	// Problem is why the file cannot run, empty if it can.
	Problem string
}

// Runnables lists the files that can be run by name, agents before workflows.
func (s *Server) Runnables() ([]Runnable, error) {
	agents, workflows := families()
	var all []Runnable
	for _, f := range []family{agents, workflows} {
		files, err := s.files.list(f)
		if err != nil {
			return nil, err
		}
		for _, each := range files {
			r := Runnable{
				Name: each.Name, Version: each.Version, Description: each.Description, Kind: each.Kind, Key: f.key, File: each.File,
				Problem: s.files.check(each.File, s.launch),
			}
			if r.Problem == "" {
				r.Signature, err = s.signature(f, each)
			}
			if err != nil {
				r.Problem = err.Error()
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (s *Server) signature(f family, r runnable) (launch.Signature, error) {
	file, err := s.files.find(f, r.Name)
	if err != nil {
		return launch.Signature{}, err
	}
	return file.Signature(s.launch)
}

// RunRow returns the row of a run.
func (s *Server) RunRow(ctx context.Context, run string) (journal.Run, error) {
	return s.store.Run(ctx, run)
}

// Follow returns the events of a run.
func (s *Server) Follow(ctx context.Context, q follow.Query) (*follow.Subscription, error) {
	return s.follower.Subscribe(ctx, q)
}

// Started returns the first event of a run.
func (s *Server) Started(ctx context.Context, run string) (started event.RunStarted, err error) {
	return drive.At[event.RunStarted](ctx, s.store, run, 0)
}

// PausedBy names the principal of the last pause of a run since it was resumed, empty
// if there is none.
func (s *Server) PausedBy(ctx context.Context, row journal.Run) (by string, err error) {
	for e, err := range drive.Backwards(ctx, s.store, row, drive.OneOf(event.TypePauseRequested, event.TypeRunResumed)) {
		if err != nil {
			return "", err
		}
		p, _ := e.Data.(event.PauseRequested)
		return p.By, nil
	}
	return "", nil
}

// Stopping is closed when the server stops.
func (s *Server) Stopping() <-chan struct{} { return s.running.Done() }

// Continue resumes runs that earlier servers of this journal left, until the server
// closes. [Server.Serve] does this as well.
func (s *Server) Continue() { s.going.Go(func() { s.takeOver(s.running) }) }

// Mount serves a path with another handler, for principals that may read runs. Call
// it before the first request.
func (s *Server) Mount(path string, h http.Handler) {
	s.router.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := access.Authorise(principalOf(r.Context()), access.Viewer); err != nil {
			s.refuse(w, r, err)
			return
		}
		if r.Method == http.MethodGet { // a stream ends only when its reader closes it
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(s.running, cancel)()
			r = r.WithContext(ctx)
		}
		h.ServeHTTP(w, r)
	}))
}

// PrincipalOf returns the principal of a request that passed the guard.
func PrincipalOf(ctx context.Context) event.Principal { return principalOf(ctx) }
