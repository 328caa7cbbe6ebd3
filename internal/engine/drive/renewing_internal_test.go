package drive

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// renewals is a store that renews a lease as often as it may.
type renewals struct {
	journal.Store
	left, done int
}

var errLost = errors.New("another process has it")

func (r *renewals) Renew(_ context.Context, l journal.Lease, _ time.Duration) (journal.Lease, error) {
	if r.done == r.left {
		return l, errLost
	}
	r.done++
	l.Epoch++
	return l, nil
}

func TestLeaseIsRenewedDuringLongWork(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			s := &renewals{left: 10}
			l, err := renewing(t.Context(), s, journal.Lease{}, 3*time.Second, func(ctx context.Context) error {
				time.Sleep(5500 * time.Millisecond)
				return ctx.Err()
			})
			if err != nil || s.done != 5 || l.Epoch != 5 {
				t.Errorf("renewed %d times to epoch %d, %v; want 5 times", s.done, l.Epoch, err)
			}
		})
	}
}

func TestWorkStopsWhenItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := renewing(t.Context(), &renewals{left: 2}, journal.Lease{}, 3*time.Second, func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, errLost) {
			t.Errorf("the work ended with %v", err)
		}
	})
}
