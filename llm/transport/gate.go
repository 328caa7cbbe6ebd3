package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// longestHold is how long a request is held back at most: as long as the loop
// waits on the same model when a provider asks it to.
const longestHold = 60 * time.Second

// gate lets the requests to one model of a provider through. Requests are numbered in the
// order in which they pass; what a provider says is left becomes the number of
// the last one that may.
type gate struct {
	provider string

	mu sync.Mutex
	// started counts the requests that passed, answered those of them that
	// came back.
	started, answered int64
	// window is what the provider last said of requests, nil for nothing.
	window *window
	// closed is until when nothing may pass at all: no tokens are left, or
	// the provider asked to wait.
	closed time.Time
	// changed is closed and replaced when an answer has come.
	changed chan struct{}
}

// window is a provider's count of requests until a reset.
type window struct {
	// upTo is the number of the last request that fits.
	upTo  int64
	reset time.Time
	// size is how many requests fit a whole window, as far as was seen.
	size int64
	// opened says that the reset of an earlier window has come and no answer
	// has told of this one yet.
	opened bool
}

// pass is a request under way. answered is how many had come back when it
// passed: those are certainly counted in what its answer says is left.
type pass struct{ answered int64 }

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

// try lets a request pass, or says how long it is held as things stand. The
// clock is read under the lock: who read it before and then waited for others
// would be held for longer than the window that they opened lasts.
func (g *gate) try() (hold time.Duration, changed <-chan struct{}, p pass) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if w := g.window; w != nil && !now.Before(w.reset) {
		// Whatever has come back told of a window that is over now; what is
		// under way may be counted in the new one.
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
	return 0, nil, pass{answered: g.answered}
}

// sleep ends with the time, with a change, or with the context.
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

// leave takes in what an answer says. header is nil when there was none.
func (g *gate) leave(p pass, header http.Header, status int) {
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
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// count turns what is left into the number of the last request that fits. What
// had come back before this request was sent is counted in what is left; of
// everything sent since, nothing is known. Each answer so gives a bound that is
// safe, and the highest bound is the best one. The latest reset counts: by then
// every window that an answer has told of is over.
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
