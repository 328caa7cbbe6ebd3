package journal

import (
	"reflect"
	"sync"
)

// Shared holds values that all users of a store in this process share, one of each
// type. A store embeds it. The zero value is empty. It is safe for concurrent use.
type Shared struct {
	mu     sync.Mutex
	values map[reflect.Type]any
}

func (s *Shared) shared() *Shared { return s }

// Share returns the value of type T that all users of a store share; the first of them
// creates it. A store without [Shared] returns a new value each time.
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
