package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/tool"
)

// Observer wraps the effects of runs to watch them: telemetry, recording. It
// must call next exactly once and hand on what that returns; it decides nothing.
// Either function may be nil. Observers are called from many goroutines.
type Observer struct {
	// Model wraps one attempt at a model call.
	Model func(ctx context.Context, c ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error)
	// Tool wraps one attempt at a tool call, which permission was given for.
	Tool func(ctx context.Context, c ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error)
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
func (d *driver) observeModel(ctx context.Context, a machine.CallModel, call func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
	c := ModelCall{Run: d.run, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}
	if len(d.engine.opts.Observers) > 0 {
		call = once(call)
	}
	for i := len(d.engine.opts.Observers) - 1; i >= 0; i-- {
		if wrap := d.engine.opts.Observers[i].Model; wrap != nil {
			next := call
			call = func(ctx context.Context) (*llm.Response, error) { return wrap(ctx, c, next) }
		}
	}
	return call(ctx)
}

// observeTool runs the tool inside the engine's observers.
func (d *driver) observeTool(ctx context.Context, a machine.RunTool, call func(context.Context) (tool.Result, error)) (tool.Result, error) {
	if len(d.engine.opts.Observers) == 0 {
		return call(ctx)
	}
	c := ToolCall{Run: d.run, CallID: a.CallID, Attempt: a.Attempt, Tool: a.Tool}
	made := call
	var recorded atomic.Bool // which is no failure to observers
	call = once(func(ctx context.Context) (tool.Result, error) {
		r, err := made(ctx)
		if errors.Is(err, errRecorded) {
			recorded.Store(true)
			err = nil
		}
		return r, err
	})
	for i := len(d.engine.opts.Observers) - 1; i >= 0; i-- {
		if wrap := d.engine.opts.Observers[i].Tool; wrap != nil {
			next := call
			call = func(ctx context.Context) (tool.Result, error) { return wrap(ctx, c, next) }
		}
	}
	r, err := call(ctx)
	if err == nil && recorded.Load() {
		err = errRecorded
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
