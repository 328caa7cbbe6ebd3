package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// Options set where a run is stored. The zero value is a run in memory.
type Options struct {
	// Journal stores the run; nil means memory. It is not closed. Keep its files
	// outside the directories that tools work in, or in the .pawl of one, which
	// always asks: a run is refused with a *[JournalError] if one of its tools
	// could write them without asking. The program's own tools declare what they
	// write in [tool.Tool.Writing].
	Journal journal.Store
	// Attachments are images and files for the task or the message: at most a
	// hundred, within the sizes that package attach accepts. Otherwise the error is
	// an [attach.ErrTooLarge] or [attach.ErrTooMany]. Content larger than 32 KiB is
	// stored once, beside the run's events.
	Attachments []llm.Media
}

// Errors of [Agent.Continue].
var (
	// ErrNotEnded is returned for a run that can still be resumed.
	ErrNotEnded = assembly.ErrNotEnded
	// ErrNothingNew is returned if the conversation ends with the model's message
	// and there is no new message to answer.
	ErrNothingNew = errors.New("pawl: nothing to continue with: give a new message")
)

// ErrInterrupted, as the cause with which a run's context ends, parks the run
// instead of cancelling it.
var ErrInterrupted = engine.ErrInterrupted

// Run runs a task to its end and returns the final state. Cancelling ctx
// cancels the run, which then ends with status cancelled. The error is a
// failure of the engine; read State.Outcome for how the run ended. Outcome is
// nil if the run parked, because a call waits for a decision or there is no
// task: State.Parked says what it waits for.
func (a Agent) Run(ctx context.Context, task string) (State, error) {
	r, err := a.Start(ctx, task, Options{})
	if err != nil {
		return State{}, err
	}
	return r.Wait()
}

// Start begins a run of a task and returns at once. Cancelling ctx cancels the
// run; nothing else that the caller does stops it.
func (a Agent) Start(ctx context.Context, task string, o Options) (*Run, error) {
	p, err := a.Prepare()
	if err != nil {
		return nil, err
	}
	return p.Start(ctx, task, o)
}

// Continue begins a new run from one that has ended, with its whole
// conversation and a new message, under the limits of a. Use it after a limit,
// a cancel or a final answer, because an ended run cannot be resumed. With
// unchanged System and Tools the requests begin with the bytes of the ended
// run's last request, so that the provider's cache still matches.
//
// An empty message continues where the run stopped, unless the conversation
// ends with the model's message.
func (a Agent) Continue(ctx context.Context, run, message string, o Options) (*Run, error) {
	p, err := a.Prepare()
	if err != nil {
		return nil, err
	}
	return p.Continue(ctx, run, message, o)
}

// Resume continues a run that parked, or whose process died. It starts where
// the journal ends, with the configuration that the run began with; the agent
// supplies the models and tools by name. Settled calls are not repeated. A run
// that another process drives is refused with a *[journal.HeldError]. A run
// whose model the agent does not have is refused with [llm.ErrUnknownModel];
// the model is the first one, or the fallback that was in use. A child with
// such a model stays parked, and so does the run.
func (a Agent) Resume(ctx context.Context, run string, o Options) (*Run, error) {
	p, err := a.Prepare()
	if err != nil {
		return nil, err
	}
	return p.Resume(ctx, run, o)
}

// stillAnswers returns an error if the run uses a model that the agent does not have,
// because its next request would end it as failed. It reads the run only if a model of
// its chain is missing, because the run may never use that one.
func stillAnswers(ctx context.Context, store journal.Store, run string, env perform.Env, started event.RunStarted) error {
	cfg, err := begunWith(started)
	if err != nil {
		return err
	}
	if len(cfg.Targets) == 0 {
		return fmt.Errorf("it is no run of an agent (%s)", started.Machine)
	}
	missing := func(t agent.Target) bool {
		_, _, err := env.Model(t.Model)
		return err != nil
	}
	if !slices.ContainsFunc(cfg.Targets, missing) {
		return nil
	}
	m, err := inspect(context.WithoutCancel(ctx), store, run) // a cancelled run is resumed in order to end it
	if err != nil {
		return err
	}
	_, _, err = env.Model(m.Model())
	return err
}

// Inspect returns the state of any run in a journal, whichever process drives
// it.
func Inspect(ctx context.Context, store journal.Store, run string) (State, error) {
	m, err := newEngine(store, nil).Inspect(ctx, run)
	if err != nil {
		return State{}, err
	}
	conversing, _ := m.(machine.Conversing)
	s := stateOf(run, conversing, m.State())
	if s.Outcome != nil {
		return s, nil
	}
	err = s.addBelow(ctx, store)
	return s, err
}

func inspect(ctx context.Context, store journal.Store, run string) (machine.Conversing, error) {
	m, err := newEngine(store, nil).Inspect(ctx, run)
	if err != nil {
		return nil, err
	}
	conversing, ok := m.(machine.Conversing)
	if !ok {
		return nil, fmt.Errorf("pawl: run %s is no conversation", run)
	}
	return conversing, nil
}

// newEngine returns the engine of one run. It holds no resources after the run is no
// longer driven, so it need not be closed.
func newEngine(store journal.Store, secrets *secret.Redactor) *engine.Engine {
	_, inMemory := store.(*memory.Store)
	common := journal.Share(store, func() *engine.Common { return engine.NewCommon(store, inMemory) })
	return engine.New(store, versions.Make, engine.Options{Secrets: secrets, Common: common})
}
