package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
)

// replays opens the models replay/RUN of a command and records which requests differed
// from the recorded ones.
type replays struct {
	app *app

	mu      sync.Mutex
	first   replay.Difference
	differs int
}

// open reads a recorded run from the journal.
func (p *replays) open(run string) (llm.Model, error) {
	ctx := context.Background()
	s, err := p.app.open(ctx, toRead)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := s.find(ctx, run)
	if err != nil {
		return nil, err
	}
	calls, err := s.engine.Past().Recording(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return replay.New(r.ID, calls, p.differ), nil
}

func (p *replays) differ(d replay.Difference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.differs++; p.differs == 1 {
		p.first = d
	}
}

// verdict returns the result of a command that may have replayed a run: a
// difference is reported as a failure.
func (p *replays) verdict(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.differs == 0 {
		return err
	}
	what := "1 request differed from the recorded one"
	if p.differs > 1 {
		what = fmt.Sprintf("%d requests differed from the recorded ones", p.differs)
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("%s; %s", what, p.first)}
}
