package follow

import (
	"runtime"
	"sync"
	"weak"
)

// shareFrom is the size from which an event that is read from the journal is encoded
// once for all concurrent readers. Sharing smaller ones costs more than it saves.
const shareFrom = 8 << 10

// shelf holds the encoded events that are in use, by their pos.
type shelf struct {
	mu   sync.Mutex
	held map[int64]weak.Pointer[encoded]
}

// of returns the shared encoded form of an event.
func (s *shelf) of(pos int64) *encoded {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.held[pos].Value(); e != nil {
		return e
	}
	if s.held == nil {
		s.held = map[int64]weak.Pointer[encoded]{}
	}
	e := new(encoded)
	s.held[pos] = weak.Make(e)
	runtime.AddCleanup(e, s.forget, pos)
	return e
}

// forget removes an event that is no longer in use.
func (s *shelf) forget(pos int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.held[pos]; ok && p.Value() == nil {
		delete(s.held, pos)
	}
}

// fitting returns how many of n events a reader gets at once: one, or as many as fit in
// pageBytes.
func fitting(n int, size func(i int) int) int {
	bytes := 0
	for i := range n {
		if bytes += size(i); bytes > pageBytes && i > 0 {
			return i
		}
	}
	return n
}
