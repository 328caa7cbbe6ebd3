package perform

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Observer wraps the effects of runs for telemetry or recording. It must call next
// exactly once and return its results; it must not influence them. Any function may be
// nil. Observers are called from many goroutines.
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
func (p *Performer) observeModel(ctx context.Context, a *machine.CallModel, call func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
	c := ModelCall{Run: p.Place.Run, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}
	if len(p.shared.Observers) > 0 {
		call = once(call)
	}
	for i := len(p.shared.Observers) - 1; i >= 0; i-- {
		if wrap := p.shared.Observers[i].Model; wrap != nil {
			next := call
			call = func(ctx context.Context) (*llm.Response, error) { return wrap(ctx, c, next) }
		}
	}
	return call(ctx)
}

// chunks returns the function to call for each piece of an answer, nil if no
// observer has one.
func (p *Performer) chunks(a *machine.CallModel) func() {
	var all []func()
	for _, o := range p.shared.Observers {
		if o.Chunks != nil {
			all = append(all, o.Chunks(ModelCall{Run: p.Place.Run, Cycle: a.Cycle, Attempt: a.Attempt, Target: a.Target}))
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

// ObserveTool runs the tool inside the engine's observers.
func (p *Performer) ObserveTool(ctx context.Context, a machine.RunTool, call func(context.Context) (tool.Result, error)) (tool.Result, error) {
	if len(p.shared.Observers) == 0 {
		return call(ctx)
	}
	c := ToolCall{Run: p.Place.Run, CallID: a.CallID, Attempt: a.Attempt, Tool: a.Tool}
	made := call
	var recorded atomic.Bool // observers do not see this as a failure
	call = once(func(ctx context.Context) (tool.Result, error) {
		r, err := made(ctx)
		if errors.Is(err, drive.ErrRecorded) {
			recorded.Store(true)
			err = nil
		}
		return r, err
	})
	for i := len(p.shared.Observers) - 1; i >= 0; i-- {
		if wrap := p.shared.Observers[i].Tool; wrap != nil {
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

// once makes call run only once, whatever observers do, because one permission and one
// reservation cover one call.
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
