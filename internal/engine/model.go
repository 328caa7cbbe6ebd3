package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

const modelEffect = "model"

// beginModel journals the intent of a model call and queues the call. A call
// whose time has not come sets the alarm instead.
func (cs *calls) beginModel(a *machine.CallModel) (bool, error) {
	if a.NotBefore.After(cs.env.clock.now()) {
		cs.alarm.set(a.NotBefore)
		cs.alarm.waiting = journal.WaitRetry
		return false, nil
	}
	if !a.Admission.Given() {
		return false, fmt.Errorf("engine: run %s: attempt %d at %s was not admitted by a budget", cs.run.id, a.Attempt, a.Target)
	}
	req := &a.Request
	model, err := cs.prepare(a.Target, req)
	intent := event.ModelRequested{Attempt: a.Attempt, Model: a.Target, Purpose: a.Purpose, Withheld: a.Withheld}
	if req.Encoded != nil {
		intent.RequestDigest, intent.RequestBytes = req.Encoded.Digest, req.Encoded.Len()
		intent.Prompt = cs.log.cache.Requested(a, model, req)
	}
	if stageErr := cs.stage(intent); stageErr != nil {
		return false, stageErr
	}
	if inputsErr := cs.giveInputs(a.Cycle); inputsErr != nil {
		return false, inputsErr
	}
	if err != nil {
		failure := llm.AsError(err)
		if errors.Is(err, llm.ErrUnknownModel) || failure.Class == llm.ClassNetwork {
			failure = &llm.Error{Class: llm.ClassInvalid, Message: err.Error(), Err: err}
		}
		return true, cs.stage(cs.env.attemptFailed(a, nil, 0, failure))
	}
	cs.effects.add(func(work context.Context) { cs.callModel(work, a, model, req) })
	return true, nil
}

// prepare returns the model for a target, and encodes the request.
func (cs *calls) prepare(target string, req *llm.Request) (llm.Model, error) {
	return guard(func() (llm.Model, error) {
		if cs.env.Model == nil {
			return nil, fmt.Errorf("%w: %s: the run has no models", llm.ErrUnknownModel, target)
		}
		model, name, err := cs.env.Model(target)
		if err != nil {
			return nil, err
		}
		return model, cs.requests.Make(req, model, name)
	}, func(message string) error { return adapterError(message, nil) })
}

func adapterPanic(message string) error { return adapterError(message, errBroken) }

func adapterError(message string, cause error) error {
	return &llm.Error{Class: llm.ClassInvalid, Message: "the model adapter " + message, Err: cause}
}

func (cs *calls) callModel(work context.Context, a *machine.CallModel, model llm.Model, req *llm.Request) {
	ctx, cancel := cs.effects.until(work, 0)
	cycle, v := cs.log.cycle, &deltaSource{deltaRedactor: cs.env.newDeltaRedactor()}
	caller, interrupted := cs.run.turns.Caller(cs.run.names, a.Target)
	paid, refused := cs.env.admit(ctx, a)
	settle := func(ctx context.Context, resp *llm.Response, err error) []event.Data {
		settled := cs.env.settleModel(ctx, a, resp, err, cycle, v)
		if f, failed := settled.(event.ModelAttemptFailed); failed && f.Class == llm.ClassInterrupted {
			interrupted()
		}
		paid.settle(settled)
		return []event.Data{settled}
	}
	cs.effects.launch(ctx, cancel, effect{
		id: modelEffect,
		do: func(ctx context.Context) []event.Data {
			if refused != nil {
				return settle(ctx, nil, refused)
			}
			resp, err := guard(func() (*llm.Response, error) {
				return cs.env.observeModel(ctx, a, func(ctx context.Context) (*llm.Response, error) {
					return cs.env.generate(llm.WithCaller(ctx, caller), a, model, req, cycle, v)
				})
			}, adapterPanic)
			return settle(ctx, resp, err)
		},
		giveUp: func(ctx context.Context, why error) []event.Data {
			return settle(ctx, nil, adapterPanic("was given up: "+why.Error()))
		},
	})
}

// settleModel returns the settlement of a model call. It also ends the call's
// deltas, and voids them if the call failed.
func (env *environment) settleModel(ctx context.Context, a *machine.CallModel, resp *llm.Response, err error, cycle int, v *deltaSource) event.Data {
	if err == nil && resp == nil {
		err = adapterPanic("gave neither an answer nor an error")
	}
	if err == nil {
		err = unfit(resp.Parts)
	}
	if err == nil {
		v.deltaRedactor.end(env.teller(v, cycle, a.Attempt))
		env.live.end(v)
		return env.record.Blobs.Detach(env.response(a, resp))
	}
	env.live.retract(v, cycle, a.Attempt)
	failure := llm.AsError(err)
	if ctx.Err() != nil {
		failure = &llm.Error{Class: llm.ClassInterrupted, Message: "the call was stopped: " + stopCause(ctx), Status: failure.Status, Unsent: failure.Unsent, Err: err}
	}
	return env.attemptFailed(a, resp, int(v.streamed.Load()), failure)
}

// generate calls the model. It streams if the model and the run's configuration
// allow it.
func (env *environment) generate(ctx context.Context, a *machine.CallModel, model llm.Model, req *llm.Request, cycle int, v *deltaSource) (*llm.Response, error) {
	streamer, ok := model.(llm.Streamer)
	if ok && a.Stream {
		tell, report := env.teller(v, cycle, a.Attempt), env.chunks(a)
		return streamer.Stream(ctx, req, func(delta llm.Delta) {
			if report != nil {
				report()
			}
			if delta.Kind == llm.DeltaReset {
				v.streamed.Store(0)
				v.deltaRedactor.reset()
				env.live.recall(v, cycle, a.Attempt)
				return
			}
			v.streamed.Add(int64(len(delta.Text) + len(delta.Tool)))
			if delta.Text != "" || delta.Tool != "" {
				v.deltaRedactor.say(delta, tell)
			}
		})
	}
	resp, err := model.Generate(ctx, req)
	if err == nil && resp != nil && a.Purpose == "" {
		env.publishResponse(resp, a.Attempt, cycle, v)
	}
	return resp, err
}

// publishResponse emits each text of an unstreamed answer once.
func (env *environment) publishResponse(resp *llm.Response, attempt, cycle int, v *deltaSource) {
	for i, p := range resp.Parts {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			v.deltaRedactor.say(llm.Delta{Kind: llm.DeltaText, Index: i, Text: t.Text}, env.teller(v, cycle, attempt))
		}
	}
}

// teller returns a function that publishes the deltas of one attempt.
func (env *environment) teller(v *deltaSource, cycle, attempt int) func(llm.Delta) {
	return func(delta llm.Delta) {
		env.live.say(v, cycle, liveData(delta, attempt))
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

func (env *environment) attemptFailed(a *machine.CallModel, partial *llm.Response, streamed int, e *llm.Error) event.ModelAttemptFailed {
	usage := charged(a, partial, streamed, e)
	if partial == nil {
		partial = &llm.Response{}
	}
	f := event.ModelAttemptFailed{
		Attempt: a.Attempt, Model: a.Target, Purpose: a.Purpose, Class: e.Class, Status: e.Status, Code: e.Code, Message: e.Message,
		RequestID: e.RequestID, PartialText: env.partialText(partial.Parts), Usage: usage, Cost: cost(a.Price, usage), Adapted: e.Adapted,
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

// response gives every call of an answer its id and moves the arguments out:
// they are stored once, in tool_call.
func (env *environment) response(a *machine.CallModel, r *llm.Response) event.ModelResponse {
	usage := used(a, r, 0)
	e := event.ModelResponse{
		Cycle: a.Cycle, Attempt: a.Attempt, ToolCalls: []event.CallRef{}, FinishReason: r.Finish, RawFinish: r.RawFinish, FinishDetail: r.FinishDetail,
		Usage: usage, Model: a.Target, Cost: cost(a.Price, usage), Parts: event.Answer(r.Parts),
		ResponseID: r.ID, RequestID: r.RequestID, TextLength: len(r.Parts.Text()), Purpose: a.Purpose,
	}
	if a.Purpose != "" {
		// Calls of such an answer never run, so they get no id.
		e.Parts = slices.DeleteFunc(e.Parts, func(p llm.Part) bool { _, text := p.(llm.Text); return !text })
	}
	for i, p := range e.Parts {
		if c, ok := p.(llm.ToolCall); ok {
			c.CallID = env.run.id + "-" + strconv.Itoa(a.Cycle) + "-" + strconv.Itoa(len(e.ToolCalls)+1)
			e.Parts[i] = wellFormed(c)
			e.ToolCalls = append(e.ToolCalls, event.CallRef{CallID: c.CallID, Tool: c.Name})
		}
	}
	if e.FinishReason == "" {
		e.FinishReason = llm.FinishEnd
		if len(e.ToolCalls) > 0 {
			e.FinishReason = llm.FinishTool
		}
	}
	return e
}

// wellFormed makes a call's arguments storable: missing arguments become an
// empty object, and text that is not JSON, or nested too deep for the journal's
// readers, is kept as a string.
func wellFormed(c llm.ToolCall) llm.ToolCall {
	switch {
	case len(c.Args) == 0 && c.ArgsText == "":
		c.Args = json.RawMessage("{}")
	case len(c.Args) > 0 && (!json.Valid(c.Args) || nestedTooDeep(c.Args)):
		c.Args, c.ArgsText = nil, string(c.Args)
	}
	return c
}

func cost(p *llm.Price, u llm.Usage) llm.Cost {
	if p == nil {
		return llm.Cost{}
	}
	return llm.Cost{USD: p.Of(u), Priced: true}
}

func stopCause(ctx context.Context) string {
	if late, ok := errors.AsType[outOfTime](context.Cause(ctx)); ok {
		return late.Error()
	}
	return "the run was stopped"
}

// maxPartialText is how many bytes of the text of a failed attempt its event
// keeps: an answer of one endless line is not worth more.
const maxPartialText = 1 << 20

// partialText returns the text that a model had produced. It is redacted before
// it is cut, or half of a secret could remain.
func (env *environment) partialText(parts llm.Parts) string {
	return clipped(env.record.Secrets.Text(parts.Text()), maxPartialText)
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
