package drive

import (
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
)

// ChangedServers is how each MCP server differs from what it was when the run began.
type ChangedServers map[string]event.ServerChanged

// Note folds an event.
func (s *ChangedServers) Note(data event.Data) {
	if d, ok := data.(event.ServerChanged); ok {
		if *s == nil {
			*s = ChangedServers{}
		}
		(*s)[d.Server] = d
	}
}

// Known reports whether the journal has a change, or none where there is none.
func (s ChangedServers) Known(d event.ServerChanged) bool {
	return slices.Equal(s[d.Server].Tools, d.Tools)
}

// SeenFiles is the content of files that a run has read or written, folded from
// its journal, so that a resumed, forked or continued run and another process know
// the same. It is safe for concurrent use.
type SeenFiles struct {
	mu      sync.Mutex
	digests map[string]string
}

// Note folds an event.
func (s *SeenFiles) Note(data event.Data) {
	files := event.FilesSeen(data)
	if len(files) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digests == nil {
		s.digests = map[string]string{}
	}
	for _, f := range files {
		s.digests[f.Path] = f.Digest
	}
}

// Digest returns the digest of the content of a file that the run has last seen.
func (s *SeenFiles) Digest(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.digests[path]
	return d, ok
}

// DeclaredSecrets are the names of a run's secrets in its journal, nil if there
// are none: run.started names them, and run.resumed if they have changed.
type DeclaredSecrets []string

// Note folds an event.
func (d *DeclaredSecrets) Note(data event.Data) {
	switch data := data.(type) {
	case event.RunStarted:
		*d = data.Secrets
	case event.RunResumed:
		if data.Secrets != nil {
			*d = data.Secrets
		}
	}
}

// Sampled is what a run knows of the samplings for its tools, by the agent that answers:
// whether a person allowed them, and what they have cost. It is safe for concurrent use.
type Sampled struct {
	mu sync.Mutex
	// agents are those of the runs that answer, by run, and asked those of the open
	// questions, by digest.
	agents, asked map[string]string
	allowed       map[string]bool
	usd           map[string]float64
}

// Note folds an event.
func (s *Sampled) Note(data event.Data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := data.(type) {
	case event.ToolInputRequired:
		if d.Form.Consent != "" {
			s.asked = noted(s.asked, d.Digest, d.Form.Consent)
		}
	case event.ToolInputResolved:
		if of := s.asked[d.Digest]; of != "" && d.Kind != event.ApprovalExpired {
			s.allowed = noted(s.allowed, of, d.Kind == event.ApprovalAnswered)
		}
	case event.ChildStarted:
		if d.During != "" {
			s.agents = noted(s.agents, d.Child, d.Name)
		}
	case event.BudgetCommitted:
		if of := s.agents[d.Run]; of != "" {
			s.usd = noted(s.usd, of, s.usd[of]+d.USD)
		}
	case event.RunForked: // a fork has its own budget
		s.agents, s.usd = nil, nil
	}
}

func noted[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// Allowed returns a person's answer to the question whether an agent may answer, and
// whether there is one.
func (s *Sampled) Allowed(agent string) (allowed, decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed, decided = s.allowed[agent]
	return allowed, decided
}

// USD returns what the runs of an agent have cost.
func (s *Sampled) USD(agent string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usd[agent]
}
