package server

import (
	"math"
	"sync"
	"time"
)

// rate is how many requests somebody may make: so many at once, and so many a second
// after that.
type rate struct{ burst, perSecond float64 }

// rates keep a principal from taking the server from the others. Who has proven
// nothing has less, so that tokens cannot be tried out.
func rates() (known, unknown rate) { return rate{5000, 500}, rate{50, 5} }

// ofAddress is how many requests an address may make, whatever they are: more than any
// principal, so that one that guesses tokens does not keep the others of its address
// out.
func ofAddress() rate { return rate{20_000, 2_000} }

// limiter counts requests by who makes them.
type limiter struct {
	mu   sync.Mutex
	left map[string]*allowance
}

// allowance is how many requests somebody had left at a time.
type allowance struct {
	rate
	left float64
	at   time.Time
}

// many is how many are counted before those are forgotten who have all they may have.
const many = 4096

// take counts a request, and says how long to wait where it is one too many.
func (l *limiter) take(who string, r rate, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.left[who]
	if a == nil {
		if len(l.left) >= many {
			l.forget(now)
		}
		a = &allowance{rate: r, left: r.burst, at: now}
		l.left[who] = a
	}
	a.rate = r
	a.fill(now)
	if a.left < 1 {
		return time.Duration(math.Ceil((1-a.left)/a.perSecond)) * time.Second
	}
	a.left--
	return 0
}

func (a *allowance) fill(now time.Time) {
	if since := now.Sub(a.at).Seconds(); since > 0 {
		a.left, a.at = min(a.burst, a.left+since*a.perSecond), now
	}
}

func (l *limiter) forget(now time.Time) {
	for who, a := range l.left {
		if a.fill(now); a.left == a.burst {
			delete(l.left, who)
		}
	}
}
