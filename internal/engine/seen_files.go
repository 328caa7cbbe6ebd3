package engine

import (
	"sync"

	"github.com/pawlrun/pawl/event"
)

// seenFiles is the content of files that a run has read or written, as its journal
// has it: a run that is resumed, forked or driven by another process knows the same.
// It is safe for concurrent use.
type seenFiles struct {
	mu      sync.Mutex
	digests map[string]string
}

func (s *seenFiles) note(data event.Data) {
	r, ok := data.(event.ToolResult)
	if !ok || len(r.Files) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digests == nil {
		s.digests = map[string]string{}
	}
	for _, f := range r.Files {
		s.digests[f.Path] = f.Digest
	}
}

// digest returns the digest of the content of a file that the run has seen last.
func (s *seenFiles) digest(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.digests[path]
	return d, ok
}
