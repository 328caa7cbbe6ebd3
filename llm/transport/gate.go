package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// longestHold bounds how long a request is held: as long as the loop waits for the same
// model when a provider asks for that.
const longestHold = 60 * time.Second

// gate admits the requests to one model of a provider. It numbers them in the order of
// admission and converts a provider's remaining count to the number of the last request
// that may be sent.
type gate struct {
	provider string

	mu sync.Mutex
	// started counts the admitted requests, answered those that have returned.
	started, answered int64
	// window is the provider's last report about requests, nil for none.
	window *window
	// closed is the time until which nothing may be sent: no tokens are left, or the
	// provider asked to wait.
	closed time.Time
	// changed is closed and replaced when an answer arrives.
	changed chan struct{}
	// limit is the number of requests in a minute by the last answer, 0 if unknown.
	limit int64
}

// perMinute returns the number of requests that the provider takes in a minute, 0 if it
// is unknown. The limits of both header formats are those of a minute.
func (g *gate) perMinute() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit
}

// window is a provider's count of requests until a reset.
type window struct {
	// upTo is the number of the last request that fits.
	upTo  int64
	reset time.Time
	// size is the number of requests in a whole window, as far as observed.
	size int64
	// opened reports that the previous window has been reset and no answer has reported
	// on this one yet.
	opened bool
}

// pass is an admitted request. number counts the requests from 1, and answered is how many
// had returned when it was admitted; the remaining count in its answer certainly includes
// those.
type pass struct{ number, answered int64 }

// probed reports whether a request may be sent although no limit is known: it is the
// first, or an answer has come. If not, it waits for a change.
func (g *gate) probed(ctx context.Context, p pass) bool {
	g.mu.Lock()
	may, changed := p.number <= 1 || g.answered > 0, g.changed
	g.mu.Unlock()
	if !may {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return may
}

// enter waits until a request may be sent.
func (g *gate) enter(ctx context.Context) (pass, error) {
	for {
		if err := ctx.Err(); err != nil {
			return pass{}, context.Cause(ctx)
		}
		hold, changed, p := g.try()
		switch {
		case hold <= 0:
			return p, nil
		case hold > longestHold:
			return pass{}, g.tooLong(hold)
		}
		sleep(ctx, hold, changed)
	}
}

// try admits a request, or returns how long it must currently wait. It reads the clock
// under the lock: a time read before waiting for the lock could be older than the
// window that others opened.
func (g *gate) try() (hold time.Duration, changed <-chan struct{}, p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if w := g.window; w != nil && !now.Before(w.reset) {
		// The answers so far described a window that has ended; requests under way may
		// count in the new one.
		g.window = &window{upTo: g.answered + w.size, reset: now.Add(longestHold), size: w.size, opened: true}
	}
	until := g.closed
	if w := g.window; w != nil && g.started >= w.upTo && w.reset.After(until) {
		until = w.reset
	}
	if until.After(now) {
		return until.Sub(now), g.changed, pass{}
	}
	g.started++
	return 0, nil, pass{number: g.started, answered: g.answered}
}

// sleep returns after the duration, at a change, or when the context ends.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
}

func (g *gate) tooLong(hold time.Duration) error {
	return &llm.Error{
		Class: llm.ClassThrottled, Provider: g.provider, RetryAfter: hold, HasRetryAfter: true,
		Message: fmt.Sprintf("the provider said that nothing is left for another %s, so it was not asked", hold.Round(time.Second)),
	}
}

// leave applies an answer's limits, and returns how long nothing may be sent. header is
// nil if there was no answer.
func (g *gate) leave(p pass, header http.Header, status int) (closed time.Duration) {
	now := time.Now()
	limits := readLimits(header, status, now)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered++
	if until := now.Add(limits.closed); limits.closed > 0 && until.After(g.closed) {
		g.closed = until
	}
	if r := limits.requests; r != nil {
		g.count(p, *r, now.Add(r.reset))
		if r.limit > 0 {
			g.limit = r.limit
		}
	}
	close(g.changed)
	g.changed = make(chan struct{})
	return limits.closed
}

// count converts the remaining count to the number of the last request that may be
// sent. The count includes the requests that had returned before this one was sent;
// whether it includes later ones is unknown. So each answer gives a safe bound, and the
// highest bound is the best. The latest reset counts, because every reported window has
// ended by then.
func (g *gate) count(p pass, r requests, reset time.Time) {
	w := window{upTo: p.answered + 1 + r.remaining, reset: reset, size: max(r.limit, r.remaining+1)}
	if old := g.window; old != nil {
		w.upTo, w.size = max(w.upTo, old.upTo), max(w.size, old.size)
		if !old.opened && old.reset.After(reset) {
			w.reset = old.reset
		}
	}
	g.window = &w
}
