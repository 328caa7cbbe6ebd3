package cachesim_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// provider answers requests as a scripted model behind a simulated cache. It is
// the transport of an adapter, so no byte leaves the process.
type provider struct {
	wire  wire
	cache cache
	// calls is how many calls the n-th answer, from 1, asks for; 0 ends the run.
	calls func(n int) int
	// before is called with the number of a request before it is answered.
	before func(n int, ctx context.Context) error
	// summary, where set, says that a request asks for a summary, and
	// compactions how often the run has been compacted so far.
	summary     func(body []byte) bool
	compactions func() int
	// refuse, where set, says that a summary that is asked for is refused.
	refuse func() bool

	mu        sync.Mutex
	now       time.Time
	pace      time.Duration
	turn      int
	served    []served
	last      *rendered
	lastAt    time.Time
	compacted int
}

// served is what one request cost, and what the oracle says of it.
type served struct {
	counted
	readable int64
	// goesOn says that the prompt begins with the whole one before it.
	goesOn bool
	// summary says that it asked for a summary, boundary that the conversation
	// was compacted just before it, so that nothing in it need be readable.
	summary, boundary bool
}

// clock moves on with every look, so that the short wait before a retry ends.
func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(50 * time.Millisecond)
	return p.now
}

// pass lets time go by.
func (p *provider) pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	n := len(p.served) + 1
	compactions, summary := 0, false
	if p.summary != nil {
		compactions, summary = p.compactions(), p.summary(body)
	}
	cost, err := p.serve(req.URL.Path, body, served{summary: summary, boundary: compactions > p.compacted})
	if err != nil {
		return reply(http.StatusBadRequest, encode(map[string]any{
			"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": err.Error()},
		})), nil
	}
	if p.before != nil {
		if err := p.before(n, req.Context()); err != nil {
			return nil, err
		}
	}
	p.compacted = compactions
	switch {
	case summary && p.refuse != nil && p.refuse():
		return reply(http.StatusBadRequest, encode(map[string]any{
			"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": "no summary today"},
		})), nil
	case summary:
		return reply(http.StatusOK, p.wire.answer(p.turn, 0, cost)), nil
	}
	p.turn++
	return reply(http.StatusOK, p.wire.answer(p.turn, p.calls(p.turn), cost)), nil
}

func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}

// serve asks the cache and the oracle.
func (p *provider) serve(path string, body []byte, s served) (counted, error) {
	r, err := p.wire.render(path, body)
	if err != nil {
		return counted{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(p.pace)
	c, err := p.cache.serve(&r, p.now)
	if err != nil {
		return counted{}, err
	}
	s.counted, s.goesOn = c, true
	if p.last != nil && !s.boundary {
		before := p.last.text()
		n := common(before, r.text())
		s.readable, s.goesOn = p.cache.readable(n, p.now.Sub(p.lastAt)), n == len(before)
	}
	p.served, p.last, p.lastAt = append(p.served, s), &r, p.now
	return c, nil
}

// totals sums what was read up against what could have been.
func (p *provider) totals() (read, readable int64) {
	for _, s := range p.served {
		read += min(s.read, s.readable)
		readable += s.readable
	}
	return read, readable
}
