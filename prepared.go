package pawl

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// Prepared is an agent that has been validated and whose tools are compiled, for
// programs that start many runs of it. It is safe for concurrent use.
type Prepared struct {
	agent   Agent
	shared  *assembly.Prepared
	secrets *secret.Redactor
}

// Prepare validates an agent once for all runs that the result starts. The methods of
// Agent do so each time. The values that a refers to must not be changed afterwards.
func (a Agent) Prepare() (*Prepared, error) {
	shared, err := a.prepare(false)
	if err != nil {
		return nil, err
	}
	return &Prepared{agent: a, shared: shared, secrets: secret.NewRedactor(a.allSecrets()...)}, nil
}

// Start is [Agent.Start].
func (p *Prepared) Start(ctx context.Context, task string, o Options) (*Run, error) {
	return p.start(ctx, task, nil, nil, o)
}

// Continue is [Agent.Continue].
func (p *Prepared) Continue(ctx context.Context, run, message string, o Options) (*Run, error) {
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: continue run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	old, err := assembly.Load(ctx, o.Journal, run)
	if err != nil {
		return nil, err
	}
	if message == "" && len(o.Attachments) == 0 && (old.Answered() || len(old.From.History) == 0) {
		return nil, fmt.Errorf("%w: %s", ErrNothingNew, run)
	}
	return p.start(ctx, message, &old.From, old.Started.Fence, o)
}

func (p *Prepared) start(ctx context.Context, message string, from *event.ContinuedFrom, fence *event.Fence, o Options) (*Run, error) {
	started, err := p.shared.Start(event.InputReceived{Text: message, Media: o.Attachments}, fence)
	if err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	started.From = from
	if o.Journal == nil {
		o.Journal = memory.NewValues(nil)
	}
	if err := p.agent.guardJournal(o.Journal, p.agent.rules()); err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	r, err := newEngine(o.Journal, p.secrets).Start(ctx, started, p.shared.Env())
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: o.Journal}, nil
}

// Resume is [Agent.Resume].
func (p *Prepared) Resume(ctx context.Context, run string, o Options) (*Run, error) {
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: resume run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	env := p.shared.Env()
	r, err := newEngine(o.Journal, p.secrets).Resume(ctx, run, func(started event.RunStarted) (perform.Env, error) {
		if err := p.agent.guardJournalOf(ctx, o.Journal, env, started); err != nil {
			return perform.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		if err := stillAnswers(ctx, o.Journal, run, env, started); err != nil {
			return perform.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		return env, nil
	})
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: o.Journal}, nil
}
