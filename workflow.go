package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Workflow is a graph of steps. Steps that depend on nothing start at once, others
// when all that they depend on has ended. A Workflow is a value, like an [Agent].
//
// Its run is the root of a tree: each step that an agent or a workflow does is a run
// of its own, with its own journal in the same store, and uses the budget of the run
// above it. What has ended is never done again, also after a crash.
type Workflow struct {
	// Name is shown in lists of runs.
	Name string
	// Agents do the steps that name them, and judge loops. One with a Schema gives its
	// result by the tool submit_result, or as a text that is the JSON alone, and its step
	// fails without one.
	Agents map[string]Agent
	Steps  []Step
	// Concurrency is how many agents, functions, commands and workflows may be at work
	// at once; 0 means no limit.
	Concurrency int
	// OnFailure sets what a failed step means for the others; by default those that
	// depend on it fail.
	OnFailure OnStepFailure
	// Order is that of steps that could start at once.
	Order StepOrder
	// Timeout is the time that the whole workflow may take; 0 means no limit.
	Timeout time.Duration
	// Limits are those of the whole tree: USD 5.00 and one hour by default, and no
	// others. A negative one removes the limit.
	Limits Limits
	// Commands runs the commands of steps and loops, as shell.Commands of package
	// tool/shell does. Permissions are rules for them, as calls of shell.exec. One that
	// starts programs without a sandbox asks first, unless NeverAsk is set: the run then
	// parks until [Run.Approve].
	Commands    tool.Commands
	Permissions Permissions
	NeverAsk    bool
	// Expressions evaluates Condition, ItemsExpression and Stop.Expression; nil if there
	// are none. For those of workflow files it is expr.New().Evaluate of package expr.
	Expressions func(ctx context.Context, expression string, values json.RawMessage) (json.RawMessage, error)
}

// Step is one step of a [Workflow]. One of Agent, Func, Command, Workflow and Steps
// says what is done; with a Loop, that is done many times.
type Step struct {
	// ID names the step among those beside it. In the run it is namespaced: an inner
	// step of an iteration is "parent.0.inner", and one of an item "parent[0].inner".
	ID string
	// DependsOn are the ids of the steps that must have ended before.
	DependsOn []string
	// When, if set, is called once before the step begins, which is skipped if it
	// returns false. It must be quick and have no effect. Condition is the same as an
	// expression.
	When      func(Values) (bool, error)
	Condition string
	// Timeout is the time for the step with all its attempts and iterations; 0 means no
	// limit. Retries are further attempts after one that failed.
	Timeout time.Duration
	Retries int
	// Agent names one of the workflow's Agents, which receives its Instructions,
	// the Files, and the output of the steps that it depends on.
	Agent        string
	Instructions string
	Files        []File
	// Func is a function of the program. What it returned is never asked for again, but
	// one that a crash or a park cut short is called again: it must be fit for that. It
	// must return soon after its context ends, and may be called from several
	// goroutines.
	Func func(ctx context.Context, v Values) (Output, error)
	// Command is a program with its arguments.
	Command []string
	// Workflow is done in a run of its own, with its own Agents and Limits. Its input is
	// what an agent would be told.
	Workflow *Workflow
	// Steps are a graph in the place of the step.
	Steps []Step
	Loop  *Loop
}

// Loop does a step many times: once for each item if there are Items, side by side,
// and otherwise again and again until one of StopWhen holds.
type Loop struct {
	// Steps are done in each iteration. Without them it is the step itself.
	Steps []Step
	// Items is a slice, whose elements are encoded as JSON. ItemsFunc returns one; it is
	// called once and must have no effect. ItemsExpression is the same as an expression.
	Items           any
	ItemsFunc       func(Values) (any, error)
	ItemsExpression string
	// MaxItems is how many items there may be: 100,000 by default, without a limit if
	// negative.
	MaxItems int
	// Concurrency is how many items are under way at once; 0 means all.
	Concurrency int
	// OnItemError sets what a failed item means for the others; by default no other one
	// begins, and the step fails.
	OnItemError OnItemError
	// MinSuccess is how many items must succeed, MinSuccessPercent how many of a
	// hundred.
	MinSuccess        int
	MinSuccessPercent float64
	// Max is how many iterations there may be. Without one a loop ends after 100 of
	// them, and that is no failure.
	Max int
	// StopWhen are looked at in order after each iteration, and the first that holds
	// ends the loop.
	StopWhen []Stop
	// OnLimit sets what it means that none of them held within Max; by default the step
	// fails.
	OnLimit OnLoopLimit
	// OnIterationError sets what a failed iteration means; by default the step fails.
	OnIterationError OnIterationError
	// Delay is the time between two iterations.
	Delay time.Duration
	// Output says what the step's content is made of: of the last iteration, by default.
	Output LoopOutput
	// JudgeFailuresMax is how many verdicts in a row may be missing before the step
	// fails; 0 means any number.
	JudgeFailuresMax int
	// NoCarry keeps from an iteration what the one before came to.
	NoCarry bool
}

// Stop is a reason to end a loop; one of its fields is set.
type Stop struct {
	// Func must return true. It must be quick and have no effect.
	Func func(Values) (bool, error)
	// Expression must give true.
	Expression string
	// Judge names one of the workflow's Agents. Its Schema has a boolean "done", or a
	// "verdict" that may be "done", "not_done" or "impossible".
	Judge string
	// Regex must be found in the iteration's content, whatever the case.
	Regex string
	// Command must exit with 0.
	Command []string
}

// Types of the fields of a [Workflow].
type (
	// Values are what functions are called with and expressions know.
	Values = flow.Values
	// StepValue is how a step ended.
	StepValue = flow.Value
	// Output is what a function returns: a text, and a result as JSON.
	Output = engine.Output
	// File is a file that an agent is handed.
	File = plan.File
	// OnStepFailure says what a failed step means for the others.
	OnStepFailure = plan.OnFailure
	// StepOrder is the order of steps that could start at once.
	StepOrder = plan.Scheduler
	// OnItemError says what a failed item means for the others.
	OnItemError = plan.OnItemError
	// OnLoopLimit says what a loop means that came to its Max.
	OnLoopLimit = plan.OnLimit
	// OnIterationError says what a failed iteration means.
	OnIterationError = plan.OnIterationError
	// LoopOutput says what the content of a loop is made of.
	LoopOutput = plan.Output
)

// The values of the fields of a [Workflow]; the zero values are described there.
const (
	// SkipDependents skips the steps that depend on a failed one.
	SkipDependents = plan.SkipDependents
	// Abort cancels all that is under way when a step fails.
	Abort = plan.Abort
	// RoundRobin takes turns between the agents of the steps.
	RoundRobin = plan.RoundRobin
	// LeastBusy starts the step whose agent has the fewest steps under way.
	LeastBusy = plan.LeastBusy
	// CollectErrors does all items, and the step fails if one did.
	CollectErrors = plan.Collect
	// ContinueItems does all items, and the step completes without those that failed.
	ContinueItems = plan.Continue
	// LoopLimitOK completes the step, LoopLimitStopped also ends the run as stopped.
	LoopLimitOK      = plan.LimitIsOK
	LoopLimitStopped = plan.LimitStopped
	// ContinueIterations goes on after a failed iteration.
	ContinueIterations = plan.IterationContinues
	// Cumulative makes the content of all iterations, with what judges said.
	Cumulative = plan.Cumulative
)

// InvalidWorkflowError is one error in a [Workflow]. All errors are reported at once,
// joined.
type InvalidWorkflowError struct {
	// Field names the field: "Steps[1].Loop.Steps[0].Agent".
	Field  string
	Reason string
}

// Error names the field and what is wrong with it.
func (e *InvalidWorkflowError) Error() string {
	return "pawl: workflow: " + e.Field + ": " + e.Reason
}

// Validate reports all errors in the workflow and its agents, as joined
// *[InvalidWorkflowError], without calling anything.
func (w Workflow) Validate() error {
	_, err := w.prepare(false)
	return err
}

// Run carries the workflow out to its end, as [Agent.Run] does a task. input is the
// task of the steps that depend on nothing; it may be empty.
func (w Workflow) Run(ctx context.Context, input string) (State, error) {
	r, err := w.Start(ctx, input, Options{})
	if err != nil {
		return State{}, err
	}
	return r.Wait()
}

// Start begins a run of the workflow and returns at once, as [Agent.Start] does.
func (w Workflow) Start(ctx context.Context, input string, o Options) (*Run, error) {
	p, err := w.prepare(false)
	if err != nil {
		return nil, err
	}
	if len(o.Attachments) > 0 {
		return nil, errors.New("pawl: start: a workflow takes no attachments; its steps have Files")
	}
	if o.Journal == nil {
		o.Journal = memory.NewValues(nil)
	}
	if err := p.guardJournal(o.Journal); err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	started, err := p.start(input)
	if err != nil {
		return nil, fmt.Errorf("pawl: start: %w", err)
	}
	r, err := newEngine(o.Journal, p.secrets()).Start(ctx, started, p.env())
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: o.Journal}, nil
}

// Resume continues a run of a workflow that parked, or whose process died, as
// [Agent.Resume] does. The run has the plan that it began with; the workflow supplies
// its agents and functions, by the names and the places of their steps. If one is
// missing that the plan needs, the run is refused.
func (w Workflow) Resume(ctx context.Context, run string, o Options) (*Run, error) {
	p, err := w.prepare(false)
	if err != nil {
		return nil, err
	}
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: resume run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	return p.resume(ctx, newEngine(o.Journal, p.secrets()), run, o.Journal)
}

// Fork begins a new run that shares the events of a run up to number seq, of those of
// its own journal, and goes on from there. Steps that had finished by then are kept. A
// step that was under way begins anew: its run belongs to the run that is forked. The
// new run has an account of its own, and the workflow supplies what [Workflow.Resume]
// needs.
func (w Workflow) Fork(ctx context.Context, run string, seq int64, o Options) (*Run, error) {
	p, err := w.prepare(false)
	if err != nil {
		return nil, err
	}
	if o.Journal == nil {
		return nil, fmt.Errorf("pawl: fork run %s: %w: no journal was given", run, journal.ErrNotFound)
	}
	e := newEngine(o.Journal, p.secrets())
	b, err := e.Branch(ctx, run, seq)
	if err != nil {
		return nil, err
	}
	if err := p.mayResume(ctx, o.Journal, p.env(), b.Started); err != nil {
		return nil, fmt.Errorf("pawl: fork run %s: %w", run, err)
	}
	fork, err := e.Fork(ctx, b, event.RunForked{})
	if err != nil {
		return nil, err
	}
	return p.resume(ctx, e, fork, o.Journal)
}

func (p *workflow) resume(ctx context.Context, e *engine.Engine, run string, store journal.Store) (*Run, error) {
	r, err := e.Resume(ctx, run, func(started event.RunStarted) (engine.Env, error) {
		env := p.env()
		if err := p.mayResume(ctx, store, env, started); err != nil {
			return engine.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		return env, nil
	})
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: store}, nil
}

// begins is the first event of a run of a plan.
func begins(cfg flow.Config, input string) (event.RunStarted, error) {
	var task *llm.Message
	if input != "" {
		task = llm.UserText(input)
	}
	return flow.Start(cfg, task)
}
