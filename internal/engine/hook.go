package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// hookEffect is the id of the effect that calls a hook.
func hookEffect(id string) string { return "hook:" + id }

// beginHook queues a hook that is not under way. A hook leaves one record, its
// result: a hook that a crash interrupts runs again.
func (cs *calls) beginHook(a machine.RunHook) {
	if cs.effects.underWay[hookEffect(a.ID)] {
		return
	}
	cs.effects.mark(hookEffect(a.ID))
	cs.effects.add(func(work context.Context) { cs.callHook(work, a) })
}

// callHook runs one hook. It settles with a result. If the run stops it, it
// settles with nothing, and the hook runs again if the run continues.
func (cs *calls) callHook(work context.Context, a machine.RunHook) {
	h, known := cs.env.hook(a.Stage, a.Hook)
	ctx, cancel := cs.effects.until(work, h.Timeout)
	start := cs.env.clock.awake()
	call := hook.Call{
		Stage: a.Stage, Hook: a.Hook, Run: cs.run.id, Cycle: a.Cycle, CallID: a.CallID, Tool: a.Tool,
		Args: bytes.Clone(a.Args), Result: a.Result, Outcome: a.Outcome, Compaction: a.Compaction,
	}
	settle := func(ctx context.Context, answer hook.Answer, err error) []event.Data {
		if err != nil {
			if err = hookFailure(ctx, err, h.Timeout); err == nil {
				return nil
			}
		}
		if err == nil && nestedTooDeep(answer.Args) {
			err = fmt.Errorf("the arguments that it gave are nested deeper than %d levels", maxNesting)
		}
		// Redact before cutting, or half of a secret could remain.
		if err != nil {
			err = errors.New(cs.env.record.Secrets.Text(err.Error()))
		}
		answer.Reason = cs.env.record.Secrets.Text(answer.Reason)
		r := hook.Result(call, a.Observer, answer, err)
		r.Args = bytes.Clone(r.Args) // the hook may keep its slice
		r.Reason = drive.Stored(r.Reason)
		r.Output = drive.Stored(cs.env.record.Secrets.Text(r.Output))
		if text, cut := tool.Bound(r.Output, a.MaxResultChars); cut {
			r.Output, r.Contains = text, drive.Excerpt{Full: r.Output}.Contains(a.Sought)
		}
		r.DurationMs = cs.env.clock.awake().Sub(start).Milliseconds()
		return []event.Data{r}
	}
	cs.effects.launch(ctx, cancel, effect{
		id: hookEffect(a.ID),
		do: func(ctx context.Context) []event.Data {
			if !known {
				return settle(ctx, hook.Answer{}, errors.New("it is not there any more"))
			}
			answer, err := guard(func() (hook.Answer, error) { return h.Run(ctx, call) },
				func(message string) error { return errors.New("it " + message) })
			if err == nil {
				// A hook that was killed produced no output, and empty output would
				// allow the call, so report the context's error.
				err = ctx.Err()
			}
			return settle(ctx, answer, err)
		},
		giveUp: func(ctx context.Context, why error) []event.Data { return settle(ctx, hook.Answer{}, why) },
	})
}

// hookFailure returns why a hook did not finish, nil if the run itself stopped
// it, because that is not the hook's failure.
func hookFailure(ctx context.Context, err error, timeout time.Duration) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fmt.Errorf("it was stopped after its timeout of %s", timeout)
	case errors.As(cause, new(outOfTime)):
		return fmt.Errorf("it was stopped because %w", cause)
	case cause != nil:
		return nil
	}
	return err
}

// hook returns the run's hook with a stage and a name.
func (v *Env) hook(stage event.HookStage, name string) (hook.Hook, bool) {
	for _, h := range v.Hooks {
		if h.Stage == stage && h.Name == name {
			return h, true
		}
	}
	return hook.Hook{Timeout: hook.DefaultTimeout}, false
}

// Observer wraps the effects of runs to watch them, for telemetry or recording.
// It must call next exactly once and return its results; it decides nothing. Any
// function may be nil. Observers are called from many goroutines.
type Observer struct {
	// Model wraps one attempt at a model call.
	Model func(ctx context.Context, c ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error)
	// Tool wraps one attempt at a permitted tool call.
	Tool func(ctx context.Context, c ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error)
	// Run returns a function that receives the run's further events, each once it is
	// on disk and one after another. Run is called again when a run is resumed. The
	// function must be quick, because the run waits for it.
	Run func(r RunInfo) func(*event.Event)
	// Chunks returns a function that is called for each piece of a streamed answer,
	// one after another.
	Chunks func(c ModelCall) func()
	// Traces reports whether new runs are to have a trace.
	Traces bool
}

// RunInfo identifies the observed run.
type RunInfo struct {
	Run, Root, Parent, Kind, Name string
	// Began is when the run began, and Trace its trace.
	Began time.Time
	Trace event.Trace
}

// observed reports whether an observer wants the events of runs.
func (o *Options) observed() bool {
	return slices.ContainsFunc(o.Observers, func(o Observer) bool { return o.Run != nil })
}

// traced reports whether new runs have a trace.
func (o *Options) traced() bool {
	return slices.ContainsFunc(o.Observers, func(o Observer) bool { return o.Traces })
}

// ModelCall identifies the observed model call.
type ModelCall struct {
	Run     string
	Cycle   int
	Attempt int
	// Target is the model as "provider/model".
	Target string
}

// ToolCall identifies the observed tool call.
type ToolCall struct {
	Run     string
	CallID  string
	Attempt int
	Tool    string
}

// observeModel calls the model inside the engine's observers, the first of them
// outermost.
func (env *environment) observeModel(ctx context.Context, a *machine.CallModel, call func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
	c := ModelCall{Run: env.run.id, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}
	if len(env.observers) > 0 {
		call = once(call)
	}
	for i := len(env.observers) - 1; i >= 0; i-- {
		if wrap := env.observers[i].Model; wrap != nil {
			next := call
			call = func(ctx context.Context) (*llm.Response, error) { return wrap(ctx, c, next) }
		}
	}
	return call(ctx)
}

// chunks returns the function to call for each piece of an answer, nil if no
// observer has one.
func (env *environment) chunks(a *machine.CallModel) func() {
	var all []func()
	for _, o := range env.observers {
		if o.Chunks != nil {
			all = append(all, o.Chunks(ModelCall{Run: env.run.id, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}))
		}
	}
	if all == nil {
		return nil
	}
	return func() {
		for _, report := range all {
			report()
		}
	}
}

// observeTool runs the tool inside the engine's observers.
func (env *environment) observeTool(ctx context.Context, a machine.RunTool, call func(context.Context) (tool.Result, error)) (tool.Result, error) {
	if len(env.observers) == 0 {
		return call(ctx)
	}
	c := ToolCall{Run: env.run.id, CallID: a.CallID, Attempt: a.Attempt, Tool: a.Tool}
	made := call
	var recorded atomic.Bool // for observers this is no failure
	call = once(func(ctx context.Context) (tool.Result, error) {
		r, err := made(ctx)
		if errors.Is(err, drive.ErrRecorded) {
			recorded.Store(true)
			err = nil
		}
		return r, err
	})
	for i := len(env.observers) - 1; i >= 0; i-- {
		if wrap := env.observers[i].Tool; wrap != nil {
			next := call
			call = func(ctx context.Context) (tool.Result, error) { return wrap(ctx, c, next) }
		}
	}
	r, err := call(ctx)
	if err == nil && recorded.Load() {
		err = drive.ErrRecorded
	}
	return r, err
}

// errAgain is the error for an observer that calls next a second time.
var errAgain = errors.New("engine: an observer handed the call on twice; it was made once")

// once makes call run only once, whatever observers do: one permission and one
// reservation are for one call.
func once[T any](call func(context.Context) (T, error)) func(context.Context) (T, error) {
	var made atomic.Bool
	return func(ctx context.Context) (T, error) {
		if made.Swap(true) {
			var none T
			return none, errAgain
		}
		return call(ctx)
	}
}
