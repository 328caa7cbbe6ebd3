package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/tool"
)

// beginModel journals the intent of a model call and queues the call. A call
// whose time has not come sets the alarm instead.
func (d *driver) beginModel(a machine.CallModel) (bool, error) {
	if a.NotBefore.After(d.now()) {
		d.wakeAt = a.NotBefore
		return false, nil
	}
	model, name, err := d.env.Model(a.Target)
	req := a.Request
	intent := event.ModelRequested{Attempt: a.Attempt, Model: a.Target}
	if err == nil {
		req.Model, req.Memo = name, d.memo
		if enc, ok := model.(llm.Encoder); ok {
			if req.Encoded, err = enc.Encode(&req); err == nil {
				intent.RequestDigest, intent.RequestBytes = req.Encoded.Digest, req.Encoded.Len()
			}
		}
	}
	if stageErr := d.stage(intent); stageErr != nil {
		return false, stageErr
	}
	if err != nil {
		failure := llm.AsError(err)
		if errors.Is(err, llm.ErrUnknownModel) || failure.Class == llm.ClassNetwork {
			failure = &llm.Error{Class: llm.ClassInvalid, Message: err.Error(), Err: err}
		}
		return true, d.stage(d.attemptFailed(a, &llm.Response{}, failure))
	}
	d.effects = append(d.effects, func(work context.Context) { d.callModel(work, a, model, &req) })
	return true, nil
}

func (d *driver) callModel(work context.Context, a machine.CallModel, model llm.Model, req *llm.Request) {
	ctx, cancel := withDeadline(work, a.Deadline)
	const flight = "model"
	d.flights[flight] = cancel
	cycle := d.cycle
	go func() {
		defer cancel()
		resp, err := d.generate(ctx, a, model, req, cycle)
		if resp == nil {
			resp = &llm.Response{}
		}
		var data event.Data
		if err != nil {
			failure := llm.AsError(err)
			if ctx.Err() != nil {
				failure = &llm.Error{Class: llm.ClassInterrupted, Message: "the call was stopped: " + stopCause(ctx), Err: err}
			}
			if a.Stream {
				d.hub.publish(d.live(cycle, event.TextReset{Attempt: a.Attempt}))
			}
			data = d.attemptFailed(a, resp, failure)
		} else {
			data = d.response(a, resp)
		}
		d.settled <- settlement{flight: flight, data: []event.Data{data}}
	}()
}

// generate calls the model, turning a panic of an adapter into an error.
func (d *driver) generate(ctx context.Context, a machine.CallModel, model llm.Model, req *llm.Request, cycle int) (resp *llm.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &llm.Error{Class: llm.ClassInvalid, Message: fmt.Sprintf("the model adapter panicked: %v", p)}
		}
	}()
	streamer, ok := model.(llm.Streamer)
	if !ok || !a.Stream {
		resp, err = model.Generate(ctx, req)
		if err == nil && a.Stream {
			d.publishWhole(resp, a.Attempt, cycle)
		}
		return resp, err
	}
	return streamer.Stream(ctx, req, func(delta llm.Delta) {
		d.hub.publish(d.live(cycle, liveData(delta, a.Attempt)))
	})
}

// publishWhole emits each text of an unstreamed answer once (ALF-33).
func (d *driver) publishWhole(resp *llm.Response, attempt, cycle int) {
	for i, p := range resp.Parts {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			d.hub.publish(d.live(cycle, event.Text{Text: t.Text, Attempt: attempt, Index: i}))
		}
	}
}

func liveData(delta llm.Delta, attempt int) event.Data {
	switch delta.Kind {
	case llm.DeltaReasoning:
		return event.Reasoning{Text: delta.Text, Attempt: attempt, Index: delta.Index}
	case llm.DeltaToolCall:
		return event.ToolCallDelta{Tool: delta.Tool, Text: delta.Text, Attempt: attempt, Index: delta.Index}
	}
	return event.Text{Text: delta.Text, Attempt: attempt, Index: delta.Index}
}

func (d *driver) live(cycle int, data event.Data) event.Event {
	return event.Event{Run: d.run, Parent: d.parent, Time: d.now(), Cycle: cycle, Data: data}
}

func (d *driver) attemptFailed(a machine.CallModel, partial *llm.Response, e *llm.Error) event.ModelAttemptFailed {
	f := event.ModelAttemptFailed{
		Attempt: a.Attempt, Model: a.Target, Class: e.Class, Status: e.Status, Code: e.Code, Message: e.Message,
		RequestID: e.RequestID, PartialText: partial.Parts.Text(), Usage: partial.Usage, Cost: cost(a.Price, partial.Usage),
	}
	if f.Message == "" {
		f.Message = e.Error()
	}
	if e.HasRetryAfter {
		ms := e.RetryAfter.Milliseconds()
		f.RetryAfterMs = &ms
	}
	return f
}

// response gives every call of an answer its id and moves the arguments out:
// they are stored once, in tool_call.
func (d *driver) response(a machine.CallModel, r *llm.Response) event.ModelResponse {
	e := event.ModelResponse{
		Cycle: a.Cycle, Attempt: a.Attempt, ToolCalls: []event.CallRef{}, FinishReason: r.Finish, RawFinish: r.RawFinish,
		Usage: r.Usage, Model: a.Target, Cost: cost(a.Price, r.Usage), Parts: event.Answer(r.Parts),
		ResponseID: r.ID, RequestID: r.RequestID, TextLength: len(r.Parts.Text()),
	}
	for i, p := range e.Parts {
		if c, ok := p.(llm.ToolCall); ok {
			c.CallID = d.run + "-" + strconv.Itoa(a.Cycle) + "-" + strconv.Itoa(len(e.ToolCalls)+1)
			e.Parts[i] = c
			e.ToolCalls = append(e.ToolCalls, event.CallRef{CallID: c.CallID, Tool: c.Name})
		}
	}
	return e
}

func cost(p *llm.Price, u llm.Usage) llm.Cost {
	if p == nil {
		return llm.Cost{}
	}
	return llm.Cost{USD: p.Of(u), Priced: true}
}

// beginTool journals the intent of a tool call and queues the call.
func (d *driver) beginTool(a machine.RunTool) error {
	if err := d.stage(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key}); err != nil {
		return err
	}
	d.effects = append(d.effects, func(work context.Context) { d.runTool(work, a) })
	return nil
}

// toolGrace is how long a tool may take to return after its context ended;
// then its call is settled without it.
const toolGrace = 5 * time.Second

func (d *driver) runTool(work context.Context, a machine.RunTool) {
	t, ok := d.env.Tools.Lookup(a.Tool)
	timeout := t.AttemptTimeout(a.Args)
	ctx, cancelDeadline := withDeadline(work, a.Deadline)
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, timeout, errTimeout)
	cancel := func() { cancelTimeout(); cancelDeadline() }
	d.flights[a.CallID] = cancel
	start := d.now()
	var once sync.Once
	settle := func(r tool.Result, err error) {
		once.Do(func() {
			data := toolResult(ctx, a, r, err, timeout)
			data.DurationMs = d.now().Sub(start).Milliseconds()
			data.Untrusted = data.Untrusted || t.Untrusted
			d.settled <- settlement{flight: a.CallID, data: []event.Data{data}}
		})
	}
	stopGrace := context.AfterFunc(ctx, func() {
		time.AfterFunc(toolGrace, func() { settle(tool.Result{}, ctx.Err()) })
	})
	go func() {
		defer cancel()
		if !ok {
			settle(tool.Result{}, &tool.Error{Type: event.ErrorUnknownTool, Message: "the tool " + a.Tool + " is not available any more"})
			return
		}
		r, err := invoke(ctx, t, a)
		stopGrace()
		settle(r, err)
	}()
}

var errTimeout = errors.New("timeout")

func invoke(ctx context.Context, t tool.Tool, a machine.RunTool) (r tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tool.Error{Type: event.ErrorPanic, Message: fmt.Sprintf("the tool panicked: %v", p)}
		}
	}()
	return t.Run(ctx, tool.Call{ID: a.CallID, Key: a.Key, Attempt: a.Attempt, Args: a.Args})
}

// toolResult turns what a tool gave into the call's settlement.
func toolResult(ctx context.Context, a machine.RunTool, r tool.Result, err error, timeout time.Duration) event.ToolResult {
	e := event.ToolResult{
		CallID: a.CallID, Tool: a.Tool, IsError: r.IsError, ErrorType: r.ErrorType, ExitCode: r.ExitCode,
		Media: r.Media, Untrusted: r.Untrusted, EndsRun: r.EndsRun, Truncated: r.Truncated, Output: r.Output,
	}
	if err != nil {
		e.IsError = true
		e.ErrorType, e.Output = errorResult(ctx, r, err, timeout)
	}
	bounded, cut := tool.Bound(e.Output, a.MaxResultChars)
	e.Output, e.Truncated = bounded, e.Truncated || cut
	return e
}

func errorResult(ctx context.Context, r tool.Result, err error, timeout time.Duration) (event.ErrorType, string) {
	kind, message := event.ErrorTool, err.Error()
	typed, ok := errors.AsType[*tool.Error](err)
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		kind, message = event.ErrorTimeout, fmt.Sprintf("the call was stopped after its timeout of %s", timeout)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		kind, message = event.ErrorTimeout, "the call was stopped because the run's wall time is used up"
	case ctx.Err() != nil:
		kind, message = event.ErrorCancelled, "the call was stopped before it finished"
	case ok:
		kind = typed.Type
	}
	return kind, tool.ErrorOutput(kind, message, r.Output)
}

// beginAsk puts pending approvals to a person, or parks when there is none.
func (d *driver) beginAsk(asks []machine.Ask) (bool, error) {
	if d.env.Ask == nil {
		ids := make([]string, len(asks))
		for i, a := range asks {
			ids[i] = a.Approval.CallID
		}
		return true, d.stage(event.RunParked{Reason: event.ParkApproval, CallIDs: ids})
	}
	for _, a := range asks {
		flight := "ask:" + a.Approval.CallID
		if _, asked := d.flights[flight]; asked {
			continue
		}
		d.flights[flight] = func() {}
		d.effects = append(d.effects, func(work context.Context) { d.ask(work, flight, a.Approval) })
	}
	return false, nil
}

func (d *driver) ask(work context.Context, flight string, p event.ToolPendingApproval) {
	ctx, cancel := context.WithCancel(work)
	d.flights[flight] = cancel
	go func() {
		defer cancel()
		answer, err := d.env.Ask(ctx, p)
		if err != nil {
			d.settled <- settlement{flight: flight, data: []event.Data{event.RunParked{
				Reason: event.ParkApproval, CallIDs: []string{p.CallID}, Detail: err.Error(),
			}}}
			return
		}
		answer.CallID, answer.Digest, answer.At = p.CallID, p.Digest, d.now().UTC()
		d.settled <- settlement{flight: flight, data: []event.Data{answer}}
	}()
}

func withDeadline(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline)
}

func stopCause(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the run's wall time is used up"
	}
	return "the run was told to stop"
}
