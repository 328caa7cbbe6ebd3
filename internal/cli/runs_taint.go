package cli

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// folded adds what only a fold of the run's events knows: what it has taken in, and
// its elapsed time. A run of an unknown machine version shows neither.
func (s *session) folded(ctx context.Context, p *page) {
	if state, err := s.engine.State(ctx, p.ID); err == nil {
		p.Taint, p.ActiveSeconds, p.IdleSeconds = state.Taint, state.Active.Seconds(), state.Idle.Seconds()
	}
}

// tookIn returns which call introduced a taint into a run.
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
