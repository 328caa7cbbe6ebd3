package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/journal"
)

var _ journal.KeepsDrivers = (*Store)(nil)

// driver is a registration, and when it expires.
type driver struct {
	journal.Driver
	expiry time.Time
}

// Register registers a driver.
func (s *Store) Register(_ context.Context, d journal.Driver, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.drivers, func(owner string, d driver) bool { return !now.Before(d.expiry) })
	if s.drivers == nil {
		s.drivers = map[string]driver{}
	}
	s.drivers[d.Owner] = driver{d, now.Add(ttl)}
	return nil
}

// Drivers returns the drivers.
func (s *Store) Drivers(context.Context) (live []journal.Driver, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.drivers {
		if s.now().Before(d.expiry) {
			live = append(live, d.Driver)
		}
	}
	slices.SortFunc(live, func(a, b journal.Driver) int { return strings.Compare(a.Owner, b.Owner) })
	return live, nil
}
