package journal

import (
	"reflect"
	"sync"
)

// Shared holds what all who use a store in this process have in common, one value of
// each type. A store embeds it. The zero value is empty, and it is safe for concurrent
// use.
type Shared struct {
	mu     sync.Mutex
	values map[reflect.Type]any
}

func (s *Shared) shared() *Shared { return s }

// Share returns the value of type T that all who use a store have in common, which the
// first of them makes. A store that has no [Shared] gives each a value of its own.
func Share[T any](store Store, make func() T) T {
	holder, ok := store.(interface{ shared() *Shared })
	if !ok {
		return make()
	}
	s := holder.shared()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := reflect.TypeFor[T]()
	if v, ok := s.values[of]; ok {
		return v.(T)
	}
	v := make()
	if s.values == nil {
		s.values = map[reflect.Type]any{}
	}
	s.values[of] = v
	return v
}
