package cli

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// folded adds what only a fold of the run's events knows: what it has taken in, and
// its elapsed time. A run of an unknown machine version shows neither.
func (s *session) folded(ctx context.Context, p *page) {
	m, err := s.engine.Inspect(ctx, p.ID)
	if err != nil {
		return
	}
	p.Taint = m.State().Taint
	if m, ok := m.(machine.Spending); ok {
		spent := m.Spent()
		p.ActiveSeconds, p.IdleSeconds = spent.Active.Seconds(), spent.Idle.Seconds()
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
