package transport

import (
	"net/http"
	"sync"
)

// Limiter keeps the requests of a process within what its providers say is
// left: after each answer it reads the provider's rate-limit headers, and while
// nothing is left it holds further requests of that provider back until the
// reset. One is shared by everything in a process that asks the same providers
// with the same keys. A request that would be held for more than a minute fails
// instead, with an [llm.Error] of class throttled that says for how long, so
// that its run can go to another model or park.
//
// Until a provider has answered for the first time, at most four requests are
// under way to it; others wait for that answer, for two seconds at most.
//
// The zero value knows of no limit yet. It is safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	gates map[string]*gate
}

func (l *Limiter) gate(provider string) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gates[provider]
	if g == nil {
		g = &gate{provider: provider, changed: make(chan struct{})}
		if l.gates == nil {
			l.gates = map[string]*gate{}
		}
		l.gates[provider] = g
	}
	return g
}

// limited is a transport behind a gate.
type limited struct {
	gate *gate
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	p, err := t.gate.enter(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		t.gate.leave(p, nil, 0)
		return nil, err
	}
	t.gate.leave(p, resp.Header, resp.StatusCode)
	return resp, nil
}
