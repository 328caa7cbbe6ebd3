package transport

import (
	"context"
	"encoding/hex"
	"math"
	"time"
)

// Counters are sums that several processes share: Count adds n to a counter unless the
// sum would exceed most, and returns the sum. The stores of package journal that keep
// counters implement it.
type Counters interface {
	Count(ctx context.Context, counter string, n, most int64) (sum int64, added bool, err error)
}

// Share makes the limiter keep the limits of its keys together with the other processes
// that use the same counters. Call it before the first request.
func (l *Limiter) Share(c Counters) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters = c
}

// reserve is the part of the provider's bucket of requests that is left for what the
// processes cannot see, such as the first request of each.
const reserve = time.Minute / 10

// queue is the order of the requests of all processes to one model with one key. Three
// counters hold it: when the provider's bucket, which is refilled at a constant rate, is
// full again after the requests so far, and until when nothing may be sent, both in
// nanoseconds since 1970, and the number of requests that it takes in a minute. A counter
// that cannot be read or written holds no request, since the provider itself refuses
// excess ones.
type queue struct {
	counters            Counters
	full, closed, limit string
}

func (l *Limiter) queue(a account) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counters == nil {
		return nil
	}
	name := "rate/" + a.provider + "/" + a.model + "/" + hex.EncodeToString(a.key[:8])
	return &queue{l.counters, name, name + "/closed", name + "/limit"}
}

// enter waits for a request's turn, and reports whether the request is counted. It is not
// if the provider's limit is unknown; then a process waits for its first answer, which
// says the limit, before it sends a second request.
func (q *queue) enter(ctx context.Context, g *gate, p pass) (counted bool, err error) {
	for {
		if err := hold(ctx, g, q.closing(ctx)); err != nil {
			return false, err
		}
		limit := q.perMinute(ctx, g)
		if limit <= 0 {
			if g.probed(ctx, p) {
				return false, nil
			}
			continue
		}
		err := hold(ctx, g, q.take(ctx, limit)-(time.Minute-reserve))
		if err == nil && q.closing(ctx) <= 0 {
			return true, nil
		}
		_, _, _ = q.counters.Count(context.WithoutCancel(ctx), q.full, -int64(interval(limit)), 0)
		if err != nil {
			return false, err
		}
	}
}

// hold waits for a time, which may be over. It fails at once if that is too long.
func hold(ctx context.Context, g *gate, d time.Duration) error {
	switch {
	case d > longestHold:
		return g.tooLong(d)
	case d > 0:
		sleep(ctx, d, nil)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// perMinute returns the limit of the last answer to any process, 0 if it is unknown.
func (q *queue) perMinute(ctx context.Context, g *gate) int64 {
	if limit := g.perMinute(); limit > 0 {
		return limit
	}
	limit, _, err := q.counters.Count(ctx, q.limit, 0, 0)
	if err != nil {
		return 0
	}
	return limit
}

func interval(perMinute int64) time.Duration { return time.Minute / time.Duration(perMinute) }

// take adds a request to the queue and returns how long the bucket then takes to be
// full.
func (q *queue) take(ctx context.Context, perMinute int64) time.Duration {
	now := time.Now()
	q.raise(ctx, q.full, now)
	full, _, err := q.counters.Count(ctx, q.full, int64(interval(perMinute)), math.MaxInt64)
	if err != nil {
		return 0
	}
	return time.Unix(0, full).Sub(now)
}

// raise raises a counter to a time, if it is lower.
func (q *queue) raise(ctx context.Context, counter string, to time.Time) {
	sum, _, err := q.counters.Count(ctx, counter, 0, 0)
	if at := to.UnixNano(); err == nil && sum < at {
		// If another process was faster, the sum would pass the maximum, and is right.
		_, _, _ = q.counters.Count(ctx, counter, at-sum, at)
	}
}

// closing returns for how long nothing may be sent.
func (q *queue) closing(ctx context.Context) time.Duration {
	until, _, err := q.counters.Count(ctx, q.closed, 0, 0)
	if err != nil {
		return 0
	}
	return time.Until(time.Unix(0, until))
}

// leave records for the other processes what an answer said, and counts its request if
// it was not counted. before is the limit that was known to this process.
func (q *queue) leave(ctx context.Context, counted bool, before, now int64, closed time.Duration) {
	ctx = context.WithoutCancel(ctx)
	if !counted && now > 0 {
		q.take(ctx, now)
	}
	if now != before {
		sum, _, err := q.counters.Count(ctx, q.limit, 0, 0)
		if err == nil && sum != now {
			_, _, _ = q.counters.Count(ctx, q.limit, now-sum, max(now, sum))
		}
	}
	if closed > 0 {
		q.raise(ctx, q.closed, time.Now().Add(closed))
	}
}
