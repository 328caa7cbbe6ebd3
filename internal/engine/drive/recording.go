package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/replay"
	"github.com/pawlrun/pawl/tool"
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

// CheckAnswer validates an answer against the run's schema. The result is
// journalled, so that no later version of the validator changes a run.
func CheckAnswer(a machine.CheckAnswer) event.AnswerChecked {
	checked := event.AnswerChecked{Cycle: a.Cycle}
	schema, err := tool.CompileSchema(a.Schema)
	if err == nil {
		err = schema.Validate(json.RawMessage(a.Answer))
	}
	if err != nil {
		checked.Problem = err.Error()
	}
	return checked
}

// ErrRecorded marks a recorded result of a tool. The result contains its own
// labels, so the labels of its tool add nothing.
var ErrRecorded = errors.New("drive: the result of a record")

// CheckDecision returns an error if an answer is not a decision.
func CheckDecision(q *event.Question, a event.Resolution) error {
	switch {
	case a.Kind == event.ApprovalExpired:
	case !slices.Contains(q.Takes, a.Kind):
		return fmt.Errorf("the answer is %q, none of %s", a.Kind, InWords(q.Takes))
	case a.Kind == event.ApprovalAnswered:
		return wrongInput(q, a)
	case a.Kind == event.ApprovalEdited && !json.Valid(a.Args):
		return errors.New("the arguments of the answer are no JSON")
	case a.Kind == event.ApprovalEdited && NestedTooDeep(a.Args):
		return fmt.Errorf("the arguments of the answer are nested deeper than %d levels", MaxNesting)
	}
	return nil
}

// InWords joins the ways to decide to a list in a sentence.
func InWords(kinds []event.ApprovalKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// wrongInput returns what is wrong with the answer to a form.
func wrongInput(q *event.Question, a event.Resolution) error {
	d, _ := q.Asking.(event.ToolInputRequired)
	if err := tool.CheckInput(d.Form.Schema, a.Args); err != nil {
		return fmt.Errorf("the answer to %s: %w", q.ID, err)
	}
	return nil
}
