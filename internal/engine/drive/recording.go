package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
)

// Past reads what runs did from their journals.
type Past struct {
	Store journal.Store
	// Machines returns an empty machine of a version.
	Machines func(version string) (machine.Machine, error)
}

// Recording returns a run's requests to models with their answers. It omits interrupted
// calls, which have no outcome.
func (p Past) Recording(ctx context.Context, run string) ([]replay.Call, error) {
	rec := recorder{}
	err := p.Refold(ctx, run, func(m machine.Machine, ev *event.Event) error {
		rec.take(m, ev)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drive: recording of run %s: %w", run, err)
	}
	return rec.calls, nil
}

// Refold folds a run's journal and calls before for each event before it is applied.
func (p Past) Refold(ctx context.Context, run string, before func(machine.Machine, *event.Event) error) error {
	content := NewBlobs(p.Store)
	var m machine.Machine
	for read, err := range Events(ctx, p.Store, run, 0) {
		if err != nil {
			return err
		}
		ev := read.Event
		if ev.Data, err = content.Attach(ctx, ev.Data); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		if m == nil {
			if m, _, err = p.Begin(ev); err != nil {
				return err
			}
		}
		if err := before(m, ev); err != nil {
			return err
		}
		if err := m.Apply(ev); err != nil {
			return err
		}
	}
	return nil
}

// recorder collects the calls of a run from its events.
type recorder struct {
	calls []replay.Call
	open  replay.Call
}

func (r *recorder) take(m machine.Machine, ev *event.Event) {
	switch d := ev.Data.(type) {
	case event.ModelRequested:
		r.open = replay.Call{}
		if a, ok := Due[machine.CallModel](m); ok {
			r.open.Request = &a.Request
		}
	case event.ModelResponse:
		r.open.Response = answerOf(d)
		r.calls = append(r.calls, r.open)
	case event.ToolCall:
		r.complete(d)
	case event.ModelAttemptFailed:
		if d.Class != llm.ClassInterrupted {
			r.open.Failure, r.open.Partial = failureOf(d), d.PartialText
			r.calls = append(r.calls, r.open)
		}
	}
}

// Due returns the first due action of a kind.
func Due[T machine.Action](m machine.Machine) (T, bool) {
	for _, a := range m.Next() {
		if a, ok := a.(T); ok {
			return a, true
		}
	}
	var none T
	return none, false
}

func answerOf(d event.ModelResponse) *llm.Response {
	return &llm.Response{
		Parts: append(llm.Parts(nil), d.Parts...), Finish: d.FinishReason, RawFinish: d.RawFinish, FinishDetail: d.FinishDetail,
		Usage: d.Usage, ID: d.ResponseID, RequestID: d.RequestID,
	}
}

// complete adds the arguments, which the journal stores separately, to a call of the
// last answer.
func (r *recorder) complete(d event.ToolCall) {
	if len(r.calls) == 0 || r.calls[len(r.calls)-1].Response == nil {
		return
	}
	parts := r.calls[len(r.calls)-1].Response.Parts
	for i, p := range parts {
		if c, ok := p.(llm.ToolCall); ok && c.CallID == d.CallID {
			made := llm.ToolCall{Name: d.Tool, Args: d.Args}
			if len(d.Sent) > 0 && d.EditedBy == "" {
				made.Args = d.Sent
			}
			c.CallID, c.Args, c.ArgsText = "", made.Outer(c.Name), d.ArgsText
			parts[i] = c
		}
	}
}

func failureOf(d event.ModelAttemptFailed) *llm.Error {
	e := &llm.Error{Class: d.Class, Status: d.Status, Code: d.Code, Message: d.Message, RequestID: d.RequestID}
	if d.Room != nil {
		e.Room = *d.Room
	}
	if d.RetryAfterMs != nil {
		e.RetryAfter, e.HasRetryAfter = time.Duration(*d.RetryAfterMs)*time.Millisecond, true
	}
	return e
}
