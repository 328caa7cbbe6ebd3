package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
)

// Effects with different timeouts share one timer, and each ends at its own time.
func TestEachEffectEndsAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &effects{pending: map[string]*pendingEffect{}}
		defer s.deadlines.Stop()
		start := time.Now()
		var mu sync.Mutex
		ended := map[string]time.Duration{}
		timeouts := map[string]time.Duration{"slow": 3 * time.Second, "fast": time.Second, "released": 2 * time.Second, "next": 2 * time.Second}
		for id, timeout := range timeouts {
			f := s.launch(t.Context(), effect{id: id, Effect: perform.Effect{Timeout: timeout, Work: work{giveUp: func(context.Context, error) []event.Data { return nil }}}})
			if at, ok := f.Deadline(); !ok || !at.Equal(start.Add(timeout)) {
				t.Errorf("%s: the deadline is %s", id, at)
			}
			if id == "released" {
				f.returned()
				continue
			}
			context.AfterFunc(f, func() {
				mu.Lock()
				defer mu.Unlock()
				ended[id] = time.Since(start)
				if cause := context.Cause(f); cause != perform.ErrTimeout || !errors.Is(f.Err(), context.DeadlineExceeded) {
					t.Errorf("%s ended with %v, %v", id, f.Err(), cause)
				}
				f.returned()
			})
		}
		unlimited := s.launch(t.Context(), effect{id: "unlimited"})
		time.Sleep(time.Minute)
		synctest.Wait()
		for id, timeout := range timeouts {
			if at, is := ended[id]; is != (id != "released") || is && at != timeout {
				t.Errorf("%s ended after %s: %t", id, at, is)
			}
		}
		if unlimited.Err() != nil {
			t.Errorf("an effect without a timeout: %v", unlimited.Err())
		}
		unlimited.returned()
	})
}
