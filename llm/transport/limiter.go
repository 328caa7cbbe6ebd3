package transport

import (
	"crypto/sha256"
	"net/http"
	"sync"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Limiter keeps the requests of a process within the limits that its providers report.
// After each answer it reads the provider's rate-limit headers, and while nothing is
// left it holds further requests for that model and key until the reset. Providers
// usually count by model and key; if one counts all models together, the first request
// to another model is refused. A process shares one limiter for all requests to the
// same providers.
//
// A request that would be held for more than a minute fails instead, with an
// [llm.Error] of class throttled that contains the time, so that its run can use
// another model or park.
//
// The zero value has no limits yet. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	gates map[account]*gate
	// counters are shared with other processes, nil for none.
	counters Counters
}

// account identifies the unit by which a provider counts requests.
type account struct {
	provider, model string
	// key is a hash of the key.
	key [sha256.Size]byte
}

func (l *Limiter) gate(a account) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gates[a]
	if g == nil {
		g = &gate{provider: a.provider, changed: make(chan struct{})}
		if l.gates == nil {
			l.gates = map[account]*gate{}
		}
		l.gates[a] = g
	}
	return g
}

// limited is a transport that passes requests through the gates of an account, one for
// each model.
type limited struct {
	limiter *Limiter
	account account
	base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	of := t.account
	of.model = wire.ModelOf(req.Context())
	gate := t.limiter.gate(of)
	p, err := gate.enter(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	q, counted := t.limiter.queue(of), false
	if q != nil {
		if counted, err = q.enter(req.Context(), gate, p); err != nil {
			gate.leave(p, nil, 0)
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		gate.leave(p, nil, 0)
		return nil, err
	}
	before := gate.perMinute()
	closed := gate.leave(p, resp.Header, resp.StatusCode)
	if q != nil {
		q.leave(req.Context(), counted, before, gate.perMinute(), closed)
	}
	return resp, nil
}
