package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Observer wraps the effects of runs to watch them: telemetry, recording. It
// must call next exactly once and hand on what that returns; it decides nothing.
// Any function may be nil. Observers are called from many goroutines.
type Observer struct {
	// Model wraps one attempt at a model call.
	Model func(ctx context.Context, c ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error)
	// Tool wraps one attempt at a tool call, which permission was given for.
	Tool func(ctx context.Context, c ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error)
	// Run returns what is given the run's events from here on, each once it is
	// on disk and one after another. It is asked anew when a run is resumed. It
	// must be quick: the run waits for it.
	Run func(r RunInfo) func(*event.Event)
	// Chunks returns what is called when each piece of a streamed answer comes, one after
	// another.
	Chunks func(c ModelCall) func()
	// Traces says that the runs which begin here are to have a trace.
	Traces bool
}

// RunInfo says which run is observed.
type RunInfo struct {
	Run, Root, Parent, Kind, Name string
	// Began is when the run did, and Trace what tells of it.
	Began time.Time
	Trace event.Trace
}

// observed reports whether an observer wants the events of runs.
func (o *Options) observed() bool {
	return slices.ContainsFunc(o.Observers, func(o Observer) bool { return o.Run != nil })
}

// traced reports whether runs that begin here have a trace.
func (o *Options) traced() bool {
	return slices.ContainsFunc(o.Observers, func(o Observer) bool { return o.Traces })
}

// ModelCall says which model call is observed.
type ModelCall struct {
	Run     string
	Cycle   int
	Attempt int
	// Target is the model as "provider/model".
	Target string
}

// ToolCall says which tool call is observed.
type ToolCall struct {
	Run     string
	CallID  string
	Attempt int
	Tool    string
}

// observeModel calls the model inside the engine's observers, the first of
// them outermost.
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

// chunks is what is called for each piece of an answer, nil where nobody wants to know.
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
	var recorded atomic.Bool // which is no failure to observers
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

// errAgain is what an observer gets that hands a call on a second time.
var errAgain = errors.New("engine: an observer handed the call on twice; it was made once")

// once holds observers to their contract: what was permitted and set aside is
// one call.
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
