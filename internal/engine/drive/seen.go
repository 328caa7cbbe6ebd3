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
