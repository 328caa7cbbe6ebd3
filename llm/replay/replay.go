// Package replay is a model that answers from a recorded run, without any
// network: every run is a fixture. Each request is held against the recorded
// one, and a request that differs is reported with the first difference.
package replay

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Call is one recorded model call whose outcome is known.
type Call struct {
	// Request is what was asked, nil when it cannot be told any more.
	Request *llm.Request
	// Response is the answer, nil where Failure is why there is none; then
	// Partial is the text that had come.
	Response *llm.Response
	Failure  *llm.Error
	Partial  string
}

// Model implements [llm.Model] on recorded calls; a request finds its place by
// its ordinal. It is safe for concurrent use.
type Model struct {
	run    string
	calls  []Call
	report func(Difference)

	mu sync.Mutex
	// now and then are the messages of the request before, of which the first
	// same were found to be alike.
	now, then []*llm.Message
	same      int
}

// New returns a model that answers what run was answered. report, which may be
// nil, hears of every request that differs from the recorded one.
func New(run string, calls []Call, report func(Difference)) *Model {
	if report == nil {
		report = func(Difference) {}
	}
	return &Model{run: run, calls: calls, report: report}
}

// Encode returns the request as it is journalled; it is never sent.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) { return wire.Plain(req) }

// Generate gives the recorded outcome of the request's place, whether the
// request is the recorded one or not. Behind the last one it fails.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &llm.Error{Class: llm.ClassNetwork, Provider: "replay/" + m.run, Message: err.Error(), Err: err}
	}
	if req.Ordinal < 0 || req.Ordinal >= len(m.calls) {
		return nil, &llm.Error{
			Class: llm.ClassInvalid, Provider: "replay/" + m.run,
			Message: fmt.Sprintf("run %s recorded %d model calls, and this run asks for number %d", m.run, len(m.calls), req.Ordinal+1),
		}
	}
	c := m.calls[req.Ordinal]
	if c.Request != nil {
		if d, differs := m.compare(req, c.Request); differs {
			d.Run, d.Call = m.run, req.Ordinal+1
			m.report(d)
		}
	}
	if c.Failure != nil {
		failure := *c.Failure
		var partial *llm.Response
		if c.Partial != "" {
			partial = &llm.Response{Parts: llm.Parts{llm.Text{Text: c.Partial}}}
		}
		return partial, &failure
	}
	answer := *c.Response
	// The receiver of the answer numbers its calls in place.
	answer.Parts = append(llm.Parts(nil), answer.Parts...)
	return &answer, nil
}

func (m *Model) compare(now, then *llm.Request) (Difference, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := 0
	for from < m.same && from < len(now.Messages) && from < len(then.Messages) &&
		now.Messages[from] == m.now[from] && then.Messages[from] == m.then[from] {
		from++
	}
	d, same := first(now, then, from)
	m.now, m.then, m.same = now.Messages, then.Messages, same
	return d, d.Segment != ""
}
