package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Workflow is a graph of steps. Steps without dependencies start at once, the others
// when all of their dependencies have ended. A Workflow is a value, like an [Agent].
//
// Its run is the root of a tree: each step that an agent or a workflow performs is a
// separate run, with its own journal in the same store, and uses the budget of its
// parent. A finished step never runs again, even after a crash.
type Workflow struct {
	// Name is shown in lists of runs.
	Name string
	// Agents perform the steps that name them, and judge loops. An agent with a Schema
	// returns its result with the tool submit_result, or as a text that is only JSON;
	// otherwise its step fails.
	Agents map[string]Agent
	Steps  []Step
	// Concurrency bounds the concurrent agents, functions, commands and workflows; 0
	// means no limit.
	Concurrency int
	// OnFailure sets the effect of a failed step on the others; by default its
	// dependents fail.
	OnFailure OnStepFailure
	// Order is the order of steps that could start at the same time.
	Order StepOrder
	// Timeout bounds the duration of the whole workflow; 0 means no limit.
	Timeout time.Duration
	// Limits are those of the whole tree: USD 5.00 and one hour by default, and no
	// others. A negative one removes the limit.
	Limits Limits
	// Commands runs the commands of steps and loops, like shell.Commands of package
	// tool/shell. Permissions are rules for them, as for calls of shell.exec. A command
	// that starts programs without a sandbox asks first, unless NeverAsk is set: the
	// run then parks until [Run.Approve].
	Commands    tool.Commands
	Permissions Permissions
	NeverAsk    bool
	// Expressions evaluates Condition, ItemsExpression and Stop.Expression; it may be
	// nil if there are none. For those of workflow files it is expr.New().Evaluate of
	// package expr.
	Expressions func(ctx context.Context, expression string, values json.RawMessage) (json.RawMessage, error)
}

// Step is one step of a [Workflow]. Exactly one of Agent, Func, Command, Workflow and
// Steps says what it does; with a Loop, it does that many times.
type Step struct {
	// ID names the step among its siblings. In the run it has a prefix: an inner step
	// of an iteration is "parent.0.inner", and one of an item "parent[0].inner".
	ID string
	// DependsOn lists the ids of the steps that must end before this one starts.
	DependsOn []string
	// When, if set, is called once before the step starts; if it returns false, the
	// step is skipped. It must be quick and have no effect. Condition is the same as an
	// expression.
	When      func(Values) (bool, error)
	Condition string
	// Timeout bounds the step with all its attempts and iterations; 0 means no limit.
	// Retries is the number of further attempts after a failed one.
	Timeout time.Duration
	Retries int
	// Agent names one of the workflow's Agents, which receives its Instructions, the
	// Files, and the output of the step's dependencies.
	Agent        string
	Instructions string
	Files        []File
	// Func is a function of the program. It is not called again after it returned, but
	// it is called again if a crash or a park interrupted it, so it must tolerate that.
	// It must return soon after its context ends, and may be called from several
	// goroutines.
	Func func(ctx context.Context, v Values) (Output, error)
	// Command is a program with its arguments.
	Command []string
	// Workflow runs as a separate run, with its own Agents and Limits. Its input is the
	// task that an agent would receive.
	Workflow *Workflow
	// Steps is a graph that replaces the step.
	Steps []Step
	Loop  *Loop
}

// Loop repeats a step: once for each item if there are Items, in parallel, and
// otherwise until one of StopWhen holds.
type Loop struct {
	// Steps run in each iteration. Without them the step itself is repeated.
	Steps []Step
	// Items is a slice, whose elements are encoded as JSON. ItemsFunc returns one; it is
	// called once and must have no effect. ItemsExpression is the same as an expression.
	Items           any
	ItemsFunc       func(Values) (any, error)
	ItemsExpression string
	// MaxItems bounds the items: 100,000 by default, without a limit if negative.
	MaxItems int
	// Concurrency bounds the concurrent items; 0 means all.
	Concurrency int
	// OnItemError sets the effect of a failed item on the others; by default no other
	// item starts, and the step fails.
	OnItemError OnItemError
	// MinSuccess is how many items must succeed, MinSuccessPercent how many of a
	// hundred.
	MinSuccess        int
	MinSuccessPercent float64
	// Max bounds the iterations. Without it a loop ends after 100 of them, which is not
	// a failure.
	Max int
	// StopWhen is checked in order after each iteration, and the first that holds ends
	// the loop.
	StopWhen []Stop
	// OnLimit sets the result if none of them held within Max; by default the step
	// fails.
	OnLimit OnLoopLimit
	// OnIterationError sets the effect of a failed iteration; by default the step
	// fails.
	OnIterationError OnIterationError
	// Delay is the time between two iterations.
	Delay time.Duration
	// Output sets the content of the step: by default that of the last iteration.
	Output LoopOutput
	// JudgeFailuresMax is how many consecutive verdicts may be missing before the step
	// fails; 0 means any number.
	JudgeFailuresMax int
	// NoCarry hides the result of the previous iteration from an iteration.
	NoCarry bool
}

// Stop is a condition that ends a loop; exactly one of its fields is set.
type Stop struct {
	// Func holds if it returns true. It must be quick and have no effect.
	Func func(Values) (bool, error)
	// Expression holds if it evaluates to true.
	Expression string
	// Judge names one of the workflow's Agents. Its Schema has a boolean "done", or a
	// "verdict" that may be "done", "not_done" or "impossible".
	Judge string
	// Regex holds if it matches the iteration's content, ignoring case.
	Regex string
	// Command holds if it exits with 0.
	Command []string
}

// Types of the fields of a [Workflow].
type (
	// Values are the input of functions and expressions.
	Values = flow.Values
	// StepValue is the result of a step.
	StepValue = flow.Value
	// Output is the result of a function: a text, and a result as JSON.
	Output = perform.Output
	// File is a file that an agent receives.
	File = plan.File
	// OnStepFailure sets the effect of a failed step on the others.
	OnStepFailure = plan.OnFailure
	// StepOrder is the order of steps that could start at the same time.
	StepOrder = plan.Scheduler
	// OnItemError sets the effect of a failed item on the others.
	OnItemError = plan.OnItemError
	// OnLoopLimit sets the result of a loop that reached its Max.
	OnLoopLimit = plan.OnLimit
	// OnIterationError sets the effect of a failed iteration.
	OnIterationError = plan.OnIterationError
	// LoopOutput sets the content of a loop.
	LoopOutput = plan.Output
)

// The values of the fields of a [Workflow]; the zero values are described there.
const (
	// SkipDependents skips the steps that depend on a failed one.
	SkipDependents = plan.SkipDependents
	// Abort cancels everything in progress when a step fails.
	Abort = plan.Abort
	// RoundRobin alternates between the agents of the steps.
	RoundRobin = plan.RoundRobin
	// LeastBusy starts the step whose agent has the fewest running steps.
	LeastBusy = plan.LeastBusy
	// CollectErrors runs all items; the step fails if one failed.
	CollectErrors = plan.Collect
	// ContinueItems runs all items; the step completes without those that failed.
	ContinueItems = plan.Continue
	// LoopLimitOK completes the step, LoopLimitStopped also ends the run as stopped.
	LoopLimitOK      = plan.LimitIsOK
	LoopLimitStopped = plan.LimitStopped
	// ContinueIterations continues after a failed iteration.
	ContinueIterations = plan.IterationContinues
	// Cumulative joins the content of all iterations and the judges' verdicts.
	Cumulative = plan.Cumulative
)

// InvalidWorkflowError is one error in a [Workflow]. All errors are reported at once,
// joined.
type InvalidWorkflowError struct {
	// Field names the field: "Steps[1].Loop.Steps[0].Agent".
	Field  string
	Reason string
}

// Error names the field and the error.
func (e *InvalidWorkflowError) Error() string {
	return "pawl: workflow: " + e.Field + ": " + e.Reason
}

// Validate reports all errors in the workflow and its agents, as joined
// *[InvalidWorkflowError], without calling anything.
func (w Workflow) Validate() error {
	_, err := w.prepare(false)
	return err
}

// Run runs the workflow to its end, like [Agent.Run]. input is the task of the steps
// without dependencies; it may be empty.
func (w Workflow) Run(ctx context.Context, input string) (State, error) {
	r, err := w.Start(ctx, input, Options{})
	if err != nil {
		return State{}, err
	}
	return r.Wait()
}

// Start begins a run of the workflow and returns at once, like [Agent.Start].
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

// Resume resumes a run of a workflow that parked, or whose process died, like
// [Agent.Resume]. The run keeps its original plan; the workflow supplies its agents and
// functions, by the names and the places of their steps. If one that the plan needs is
// missing, Resume returns an error.
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

// Fork begins a new run that shares the events of a run up to number seq of its own
// journal, and continues from there. Steps that had finished by then are kept. A step
// in progress starts again, because its run belongs to the original. The new run has a
// separate account, and the workflow supplies the same as for [Workflow.Resume].
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
	r, err := e.Resume(ctx, run, func(started event.RunStarted) (perform.Env, error) {
		env := p.env()
		if err := p.mayResume(ctx, store, env, started); err != nil {
			return perform.Env{}, fmt.Errorf("pawl: resume run %s: %w", run, err)
		}
		return env, nil
	})
	if err != nil {
		return nil, err
	}
	return &Run{run: r, store: store}, nil
}

// begins returns the first event of a run of a plan.
func begins(cfg flow.Config, input string) (event.RunStarted, error) {
	var task *llm.Message
	if input != "" {
		task = llm.UserText(input)
	}
	return flow.Start(cfg, task)
}
