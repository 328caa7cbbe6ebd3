package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/secret"
)

// Options say where a run lives. The zero value is a run in memory.
type Options struct {
	// Journal keeps the run; nil means the process's memory. It is not closed.
	// Its files belong beside the directories that tools work in, or into the
	// .pawl of one, about which every call asks that names it: a run one of whose tools
	// could write them unasked is refused with a *[JournalError]. Tools of the
	// program's own are known by what they say ([tool.Tool.Writing]).
	Journal journal.Store
	// Attachments are images and files that go with the task or the message, a
	// hundred at most and within the sizes that package attach takes; beyond, the
	// error is an [attach.ErrTooLarge] or [attach.ErrTooMany]. What is larger than
	// 32 KiB is stored once, beside the run's events.
	Attachments []llm.Media
}

// Errors of [Agent.Continue].
var (
	// ErrNotEnded is returned for a run that can still go on by itself.
	ErrNotEnded = errors.New("pawl: the run has not ended; resume it instead")
	// ErrNothingNew is returned when the conversation's last word is the
	// model's and there is no message to answer.
	ErrNothingNew = errors.New("pawl: nothing to continue with: give a new message")
)

// ErrInterrupted, as the cause with which a run's context ends, parks the run
// instead of cancelling it.
var ErrInterrupted = engine.ErrInterrupted

// Run runs a task to its end and returns the final state. Cancelling ctx
// cancels the run, which then ends with status cancelled. The error is a
// failure of the engine; read State.Outcome for how the run ended. It is nil
// where the run parked instead, because a call waits for a decision or there is
// no task: State.Parked says what it waits for.
func (a Agent) Run(ctx context.Context, task string) (State, error) {
	r, err := a.Start(ctx, task, Options{})
	if err != nil {
		return State{}, err
	}
	return r.Wait()
}

// Start begins a run of a task and returns at once. Cancelling ctx cancels the
// run; nothing else that the caller does or stops doing does.
func (a Agent) Start(ctx context.Context, task string, o Options) (*Run, error) {
	return a.start(ctx, task, nil, nil, o)
}

// Continue begins a new run from one that has ended, with its whole
// conversation and a new message, under the limits that a has now. It is how to
// go on after a limit, a cancel or a final answer; an ended run itself never
// does. With an unchanged System and Tools the requests begin with the bytes of
// the ended run's last one, so that a provider's cache still holds.
//
// An empty message goes on where the run stopped, if the model has not had the
// last word.
func (a Agent) Continue(ctx context.Context, run, message string, o Options) (*Run, error) {
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: continue run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	m, err := inspect(ctx, o.Journal, run)
	if err != nil {
		return nil, err
	}
	if m.State().Phase != machine.Ended {
		return nil, fmt.Errorf("%w: %s", ErrNotEnded, run)
	}
	conversation, err := m.Conversation()
	if err != nil {
		return nil, fmt.Errorf("pawl: continue run %s: %w", run, err)
	}
	last := len(conversation) - 1
	if message == "" && len(o.Attachments) == 0 && (last < 0 || conversation[last].Role == llm.RoleAssistant) {
		return nil, fmt.Errorf("%w: %s", ErrNothingNew, run)
	}
	row, err := o.Journal.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("pawl: continue run %s: %w", run, err)
	}
	from := event.ContinuedFrom{Run: run, Seq: row.Seq, Root: m.Workload(), History: conversation, Taint: m.State().Taint}
	return a.start(ctx, message, &from, m.Fence(), o)
}

func (a Agent) start(ctx context.Context, message string, from *event.ContinuedFrom, fence *event.Fence, o Options) (*Run, error) {
	cfg, env, err := a.build()
	if err != nil {
		return nil, err
	}
	if fence == nil && env.Tools.Fences() {
		fence = &event.Fence{}
	}
	started, err := agent.StartFenced(cfg, event.InputReceived{Text: message, Media: o.Attachments}.Message(), fence)
	if err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	started.Name, started.From, started.Warnings = a.Name, from, warnings(cfg)
	if o.Journal == nil {
		o.Journal = memory.New(nil)
	}
	if err := a.keepsOff(o.Journal, a.rules()); err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	e := newEngine(o.Journal, a.treesSecrets())
	r, err := e.Start(ctx, started, env)
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: o.Journal}, nil
}

// Resume takes up a run that parked, or that a process left which is gone. It
// goes on where the journal ends, with the configuration that the run began
// with; the agent gives the models and tools behind the names. What was settled
// is not repeated. A run that somebody drives is refused with a
// *[journal.HeldError]; one whose model the agent does not have, with
// [llm.ErrUnknownModel]: that is the first, or the fallback that took over. A
// child of which that is so stays parked, and so does the run.
func (a Agent) Resume(ctx context.Context, run string, o Options) (*Run, error) {
	_, env, err := a.build()
	if err != nil {
		return nil, err
	}
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: resume run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	e := newEngine(o.Journal, a.treesSecrets())
	r, err := e.Resume(ctx, run, func(started event.RunStarted) (engine.Env, error) {
		if err := a.stillKeepsOff(ctx, o.Journal, env, started); err != nil {
			return engine.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		if err := stillAnswers(ctx, o.Journal, run, env, started); err != nil {
			return engine.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		return env, nil
	})
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: o.Journal}, nil
}

// stillAnswers refuses a run that stands on a model that the agent does not have:
// its next request would end it as failed, for good. The run is read only where a
// model of its chain is missing, because it may never come to that one.
func stillAnswers(ctx context.Context, store journal.Store, run string, env engine.Env, started event.RunStarted) error {
	cfg, err := begunWith(started)
	if err != nil {
		return err
	}
	missing := func(t agent.Target) bool {
		_, _, err := env.Model(t.Model)
		return err != nil
	}
	if !slices.ContainsFunc(cfg.Targets, missing) {
		return nil
	}
	m, err := inspect(context.WithoutCancel(ctx), store, run) // a cancelled run is taken up to end it
	if err != nil {
		return err
	}
	_, _, err = env.Model(m.Model())
	return err
}

// Inspect returns the state of any run in a journal, whoever drives it.
func Inspect(ctx context.Context, store journal.Store, run string) (State, error) {
	m, err := inspect(ctx, store, run)
	if err != nil {
		return State{}, err
	}
	return stateOf(run, m, m.State()), nil
}

func inspect(ctx context.Context, store journal.Store, run string) (*agent.Machine, error) {
	m, err := newEngine(store, nil).Inspect(ctx, run)
	if err != nil {
		return nil, err
	}
	am, ok := m.(*agent.Machine)
	if !ok {
		return nil, fmt.Errorf("pawl: run %s is not an agent's", run)
	}
	return am, nil
}

// newEngine makes the engine of one run. It holds nothing once the run is not
// driven any more, so it needs no end of its own.
func newEngine(store journal.Store, secrets *secret.Redactor) *engine.Engine {
	return engine.New(store, func(version string) (machine.Machine, error) {
		if version != agent.Version {
			return nil, fmt.Errorf("%w: machine %s", agent.ErrUnsupported, version)
		}
		return agent.New(), nil
	}, engine.Options{Secrets: secrets})
}
