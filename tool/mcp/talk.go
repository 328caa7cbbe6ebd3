package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/tool"
)

// talk is a call in progress during which its server may ask a person.
type talk struct {
	// asked receives the first question without an answer, which ends the attempt. over
	// is closed when the attempt has ended.
	asked chan error
	over  chan struct{}
	// run asks a person who is present; nil outside a run. asking is called before and
	// after that.
	run    tool.Run
	asking func(while bool)
	// ctx is the context of the attempt.
	ctx context.Context

	mu sync.Mutex
	x  exchange
	// question is the error that would end the attempt while a person is asked.
	question error
	// answers holds the answers that the server has not received yet.
	answers []answer
}

func newTalk(ctx context.Context, run tool.Run, x exchange, asking func(while bool)) *talk {
	t := &talk{asked: make(chan error, 1), over: make(chan struct{}), run: run, asking: asking, ctx: ctx, x: x}
	for _, a := range x.Answers {
		if a.Name == "" {
			t.answers = append(t.answers, a)
		}
	}
	return t
}

// take returns the answer to a question and removes it, so that it is used once. A
// person who declined a question declines whatever is asked in its place.
func (t *talk) take(q asks) (answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.answers {
		if a.Digest == q.Digest || i == 0 && a.Action == declined {
			t.answers = slices.Delete(t.answers, i, i+1)
			return a, true
		}
	}
	return answer{}, false
}

// ask asks a person who is present, and returns the answer. An error ends the attempt
// with the question.
func (t *talk) ask(q asks) (answer, error) {
	t.mu.Lock()
	err := t.x.ask(q)
	t.question = err
	t.mu.Unlock()
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || t.run == nil {
		return answer{}, err
	}
	t.asking(true)
	given, err := t.run.Ask(t.ctx, needs.Form)
	if err != nil {
		return answer{}, err
	}
	t.asking(false)
	now, err := continued(&given)
	if err != nil {
		return answer{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.x, t.question = now, nil
	if q.Consent != "" {
		return answer{}, nil
	}
	return now.Answers[len(now.Answers)-1], nil
}

// open returns the error that ends the attempt with the current question, nil if there
// is none.
func (t *talk) open() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.question
}

// talking directs the questions of the server to a call until end is called.
func (s *Server) talking(t *talk) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talks = append(s.talks, t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.talks = slices.DeleteFunc(s.talks, func(other *talk) bool { return other == t })
		close(t.over)
	}
}

// elicit answers a request of the server from the journal, or else ends the attempt of
// the call that it belongs to. Requests do not identify their call.
func (s *Server) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	q, err := questionOf("", r.Params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	talks := slices.Clone(s.talks)
	s.mu.Unlock()
	for _, t := range talks {
		if a, there := t.take(q); there {
			return a.result()
		}
	}
	t, err := s.oneTalk("a person can be asked")
	if err != nil {
		return nil, err
	}
	a, err := t.ask(q)
	if err == nil {
		return a.result()
	}
	return nil, t.end(ctx, err)
}

// oneTalk returns the call in progress that a request belongs to, which does not
// identify it. what is what the server cannot have if there are several.
func (s *Server) oneTalk(what string) (*talk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.talks) != 1 {
		return nil, refusal(fmt.Sprintf("%s about one call at a time, and %d are under way", what, len(s.talks)))
	}
	return s.talks[0], nil
}

// end ends the attempt with a question, and returns the error for the server.
func (t *talk) end(ctx context.Context, question error) error {
	select {
	case t.asked <- question:
	default:
		return refusal("a person is asked something else about the call already")
	}
	select {
	case <-t.over:
	case <-ctx.Done():
	}
	return refusal("a person answers later, and the call is made again then")
}
