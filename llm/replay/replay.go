// Package replay implements a model that answers from a recorded run without a network,
// so that every run can serve as a fixture. It compares each request with the recorded
// one and reports the first difference.
package replay

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Call is one recorded model call with a known outcome.
type Call struct {
	// Request is the recorded request, nil if it is unknown.
	Request *llm.Request
	// Response is the answer. If it is nil, Failure is the error and Partial the text
	// that had arrived.
	Response *llm.Response
	Failure  *llm.Error
	Partial  string
}

// Model implements [llm.Model] with recorded calls; a request's ordinal selects its
// call. It is safe for concurrent use.
type Model struct {
	run    string
	calls  []Call
	report func(Difference)

	mu sync.Mutex
	// now and then are the messages of the previous request, of which the first same
	// were equal.
	now, then []*llm.Message
	same      int
}

// New returns a model that repeats the answers of a run. report, which may be nil, is
// called for every request that differs from the recorded one.
func New(run string, calls []Call, report func(Difference)) *Model {
	if report == nil {
		report = func(Difference) {}
	}
	return &Model{run: run, calls: calls, report: report}
}

// Encode returns the request in the form that is journalled; it is never sent.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) { return wire.Plain(req) }

// Generate returns the recorded outcome for the request's ordinal, whether or not the
// request differs. After the last one it fails.
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
	// The caller numbers the calls of the answer in place.
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
