package memory

import (
	"context"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsCounters = (*Store)(nil)

// Count adds to a counter.
func (s *Store) Count(_ context.Context, counter string, n, most int64) (sum int64, added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum = s.counters[counter]
	if n > 0 && sum > most-n {
		return sum, false, nil
	}
	if s.counters == nil {
		s.counters = map[string]int64{}
	}
	s.counters[counter] = sum + n
	return sum + n, true, nil
}
