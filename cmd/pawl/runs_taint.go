package main

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// taint is what a run has taken in. A run of a machine that this version does
// not know shows none, as nothing else of its state.
func (s *session) taint(ctx context.Context, run string) event.Taint {
	m, err := s.engine.Inspect(ctx, run)
	if err != nil {
		return event.Taint{}
	}
	return m.State().Taint
}

// tookIn says which call brought something into a run.
func tookIn(t *event.TaintSource) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("since cycle %d, by %s", t.Cycle, t.Tool)
	if t.CallID != "" {
		text += ", call " + t.CallID
	}
	return text
}
