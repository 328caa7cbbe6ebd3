package server

import (
	"math"
	"sync"
	"time"
)

// rate is an allowance of requests: a burst, and then so many a second.
type rate struct{ burst, perSecond float64 }

// rates keep one principal from using up the server. An unauthenticated client has
// less, so that tokens cannot be guessed.
func rates() (known, unknown rate) { return rate{5000, 500}, rate{50, 5} }

// ofAddress is the allowance of an address for all requests: more than any
// principal, so that a client that guesses tokens does not block others at its
// address.
func ofAddress() rate { return rate{20_000, 2_000} }

// limiter counts requests by client.
type limiter struct {
	mu   sync.Mutex
	left map[string]*allowance
}

// allowance is what a client had left at a time.
type allowance struct {
	rate
	left float64
	at   time.Time
}

// maxClients bounds the table; beyond it, clients with a full allowance are
// dropped.
const maxClients = 4096

// take counts a request, and returns how long to wait if the allowance is used up.
func (l *limiter) take(who string, r rate, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.left[who]
	if a == nil {
		if len(l.left) >= maxClients {
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
