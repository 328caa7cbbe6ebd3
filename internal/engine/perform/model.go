package perform

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// Prepare returns the model for a target, and encodes the request.
func (p *Performer) Prepare(requests *drive.Requests, target string, req *llm.Request) (llm.Model, error) {
	return Guard(func() (llm.Model, error) {
		if p.Model == nil {
			return nil, fmt.Errorf("%w: %s: the run has no models", llm.ErrUnknownModel, target)
		}
		model, name, err := p.Model(target)
		if err != nil {
			return nil, err
		}
		return model, requests.Make(req, model, name)
	}, func(message string) error { return adapterError(message, nil) })
}

// Unprepared returns the settlement of a call that could not be prepared.
func (p *Performer) Unprepared(a *machine.CallModel, err error) event.Data {
	failure := llm.AsError(err)
	if errors.Is(err, llm.ErrUnknownModel) || failure.Class == llm.ClassNetwork {
		failure = &llm.Error{Class: llm.ClassInvalid, Message: err.Error(), Err: err}
	}
	return p.attemptFailed(a, nil, 0, failure)
}

func adapterPanic(message string) error { return adapterError(message, errBroken) }

func adapterError(message string, cause error) error {
	return &llm.Error{Class: llm.ClassInvalid, Message: "the model adapter " + message, Err: cause}
}

// modelCall is an attempt at a model call.
type modelCall struct {
	*Performer
	a     *machine.CallModel
	model llm.Model
	req   *llm.Request
	// cycle is that of the deltas.
	cycle  int
	deltas deltaSource
	caller llm.Caller
	// interrupted is called if the call is made again.
	interrupted func()
	payment     payment
}

// AskModel returns the effect of an attempt at a model call. cycle is the cycle of its
// deltas.
func (p *Performer) AskModel(a *machine.CallModel, model llm.Model, req *llm.Request, cycle int, turns *drive.Turns, names func() []string) Effect {
	c := &modelCall{Performer: p, a: a, model: model, req: req, cycle: cycle, deltas: deltaSource{deltaRedactor: p.newDeltaRedactor()}}
	c.caller, c.interrupted = turns.Caller(names, a.Target)
	return Effect{Work: c}
}

// Do implements [Work].
func (c *modelCall) Do(ctx context.Context) []event.Data {
	paid, refused := c.admit(ctx, c.a)
	if refused != nil {
		return c.settle(ctx, nil, refused)
	}
	c.payment.open(paid)
	resp, err := Guard(func() (*llm.Response, error) {
		return c.observeModel(ctx, c.a, func(ctx context.Context) (*llm.Response, error) {
			return c.generate(llm.WithCaller(ctx, c.caller))
		})
	}, adapterPanic)
	return c.settle(ctx, resp, err)
}

// GiveUp implements [Work].
func (c *modelCall) GiveUp(ctx context.Context, why error) []event.Data {
	return c.settle(ctx, nil, adapterPanic("was given up: "+why.Error()))
}

func (c *modelCall) settle(ctx context.Context, resp *llm.Response, err error) []event.Data {
	settled := c.settlement(ctx, resp, err)
	if f, failed := settled.(event.ModelAttemptFailed); failed && f.Class == llm.ClassInterrupted {
		c.interrupted()
	}
	c.payment.settle(settled)
	return []event.Data{settled}
}

// settlement returns the settlement of a model call. It also ends the call's
// deltas, and voids them if the call failed.
func (c *modelCall) settlement(ctx context.Context, resp *llm.Response, err error) event.Data {
	if err == nil && resp == nil {
		err = adapterPanic("gave neither an answer nor an error")
	}
	if err == nil {
		err = unfit(resp.Parts)
	}
	if err == nil {
		c.deltas.deltaRedactor.end(c.publish)
		c.Deltas.end(&c.deltas)
		return c.Record.Blobs.Detach(c.response(c.a, resp))
	}
	c.Deltas.retract(&c.deltas, c.cycle, c.a.Attempt)
	failure := llm.AsError(err)
	if ctx.Err() != nil {
		failure = &llm.Error{Class: llm.ClassInterrupted, Message: "the call was stopped: " + stopCause(ctx), Status: failure.Status, Unsent: failure.Unsent, Err: err}
	}
	return c.attemptFailed(c.a, resp, int(c.deltas.streamed.Load()), failure)
}

// generate calls the model. It streams if the model and the run's configuration
// allow it.
func (c *modelCall) generate(ctx context.Context) (*llm.Response, error) {
	streamer, ok := c.model.(llm.Streamer)
	if ok && c.a.Streamed {
		report := c.chunks(c.a)
		return streamer.Stream(ctx, c.req, func(delta llm.Delta) {
			if report != nil {
				report()
			}
			c.stream(delta)
		})
	}
	resp, err := c.model.Generate(ctx, c.req)
	if err == nil && resp != nil && c.a.Purpose == "" {
		c.publishResponse(resp)
	}
	return resp, err
}

// stream takes a delta of a streamed answer.
func (c *modelCall) stream(delta llm.Delta) {
	if delta.Kind == llm.DeltaReset {
		c.deltas.streamed.Store(0)
		c.deltas.deltaRedactor.reset()
		c.Deltas.recall(&c.deltas, c.cycle, c.a.Attempt)
		return
	}
	c.deltas.streamed.Add(int64(len(delta.Text) + len(delta.Tool)))
	if delta.Text != "" || delta.Tool != "" {
		c.deltas.deltaRedactor.add(delta, c.publish)
	}
}

// publishResponse emits each text of an unstreamed answer once.
func (c *modelCall) publishResponse(resp *llm.Response) {
	for i, p := range resp.Parts {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			c.deltas.deltaRedactor.add(llm.Delta{Kind: llm.DeltaText, Index: i, Text: t.Text}, c.publish)
		}
	}
}

// publish publishes a delta.
func (c *modelCall) publish(delta llm.Delta) {
	c.Deltas.publish(&c.deltas, c.cycle, liveData(delta, c.a.Attempt))
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

func (p *Performer) attemptFailed(a *machine.CallModel, partial *llm.Response, streamed int, e *llm.Error) event.ModelAttemptFailed {
	usage := charged(a, partial, streamed, e)
	if partial == nil {
		partial = &llm.Response{}
	}
	f := event.ModelAttemptFailed{
		Attempt: a.Attempt, Model: a.Target, Purpose: a.Purpose, Class: e.Class, Status: e.Status, Code: e.Code, Message: e.Message,
		RequestID: e.RequestID, PartialText: p.PartialText(partial.Parts), Usage: usage, Cost: cost(a.Price, usage), Adapted: e.Adapted,
	}
	if f.Message == "" {
		f.Message = e.Error()
	}
	if e.Room != (llm.Room{}) {
		f.Room = &e.Room
	}
	if e.HasRetryAfter {
		ms := e.RetryAfter.Milliseconds()
		f.RetryAfterMs = &ms
	}
	return f
}

func cost(p *llm.Price, u llm.Usage) llm.Cost {
	if p == nil {
		return llm.Cost{}
	}
	return llm.Cost{USD: p.Of(u), Priced: true}
}

func stopCause(ctx context.Context) string {
	if late, ok := errors.AsType[OutOfTime](context.Cause(ctx)); ok {
		return late.Error()
	}
	return "the run was stopped"
}

// maxPartialText is how many bytes of the text of a failed attempt its event
// keeps: an answer of one endless line is not worth more.
const maxPartialText = 1 << 20

// PartialText returns the text that a model had produced. It is redacted before
// it is cut, or half of a secret could remain.
func (p *Performer) PartialText(parts llm.Parts) string {
	return clipped(p.Record.Secrets.Text(parts.Text()), maxPartialText)
}

// clipped returns the beginning of a text, at most limit bytes of whole
// characters.
func clipped(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
