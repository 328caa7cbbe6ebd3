// Package signals exports runs to OpenTelemetry: a span for each run, model call and
// tool call, and the corresponding metrics, following the GenAI conventions. It reads
// only the runs' events, so a run that another process resumes continues its trace.
// Texts are exported only on request.
package signals

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
)

// spanBuilder creates the spans of one run from its events.
type spanBuilder struct {
	run     perform.RunInfo
	names   *[terms]name
	dialect dialect
	content bool
	put     func(span)
	// meter is nil if metrics are off. whole reports that the exporter has seen the run
	// from its start, and so all of its calls.
	meter                 *meter
	whole                 bool
	modelCalls, toolCalls int64

	// asked is the model call in progress, and calls the tool calls in progress by id.
	asked modelCall
	calls map[string]toolCallSpan
	// provider is the provider of the last model call.
	provider  string
	compacted bool
}

type modelCall struct {
	since    time.Time
	model    string
	attempts int64
}

type toolCallSpan struct {
	since    time.Time
	args     string
	attempts int64
}

// event processes the next event of the run.
func (t *spanBuilder) event(ev *event.Event) {
	switch d := ev.Data.(type) {
	case event.RunStarted:
		t.whole = true
	case event.ModelRequested:
		if t.asked.attempts == 0 {
			t.asked.since = ev.Time
		}
		t.asked.model = d.Model
		t.asked.attempts++
	case event.ModelResponse:
		t.answered(ev, d)
	case event.HistoryCompressed:
		t.compacted = true
	case event.ToolCall:
		if t.content {
			t.calls[d.CallID] = toolCallSpan{args: cmp.Or(string(d.Args), d.ArgsText)}
		}
	case event.ToolStarted:
		c := t.calls[d.CallID]
		if c.attempts == 0 {
			c.since = ev.Time
		}
		c.attempts++
		t.calls[d.CallID] = c
	case event.ToolResult:
		t.toolDone(ev, d)
	case event.RunTerminatedBy:
		t.unanswered(ev, string(d.Reason))
	case event.RunCompleted:
		t.ended(ev, &d.Outcome)
	}
}

// add adds an attribute unless the dialect lacks it or the value is empty or zero.
func (t *spanBuilder) add(s *span, what term, v any) {
	key := t.names[what][t.dialect]
	if key == "" || v == "" || v == int64(0) {
		return
	}
	s.Attributes = append(s.Attributes, attribute{key, valueOf(v)})
}

// span returns a span of the run that starts at since and ends with ev.
func (t *spanBuilder) span(what, operationName, title string, since time.Time, ev *event.Event) span {
	s := span{
		TraceID: t.run.Trace.ID, SpanID: t.run.Trace.Span(t.run.Run, what), ParentSpanID: t.run.Trace.Span(t.run.Run, ""),
		Name: strings.TrimSpace(operationName + " " + title), Kind: kindInternal, Start: at(since), End: at(ev.Time),
	}
	if since.IsZero() {
		s.Start = s.End
	}
	t.add(&s, operation, operationName)
	t.add(&s, conversation, t.run.Root)
	t.add(&s, runID, t.run.Run)
	return s
}

func (t *spanBuilder) fail(s *span, kind string) {
	t.add(s, errorType, cmp.Or(kind, "_OTHER"))
	s.Status = status{Code: statusError}
}

func (t *spanBuilder) usage(s *span, u llm.Usage) {
	t.add(s, inputTokens, u.Input)
	t.add(s, outputTokens, u.Output)
	t.add(s, cacheRead, u.CacheRead)
	t.add(s, cacheWrite, u.CacheWrite)
	t.add(s, reasoning, u.Reasoning)
}

// chat returns the span of the model call that just ended.
func (t *spanBuilder) chat(ev *event.Event) span {
	company, model := target(t.asked.model)
	s := t.span("model "+strconv.FormatInt(ev.Seq, 10), "chat", model, t.asked.since, ev)
	s.Kind, t.provider = kindClient, company
	t.add(&s, provider, company)
	t.add(&s, requestModel, model)
	if t.asked.attempts > 1 {
		t.add(&s, attempts, t.asked.attempts)
	}
	if t.compacted {
		t.add(&s, compacted, true)
	}
	t.modelCalls++
	t.asked = modelCall{}
	return s
}

func (t *spanBuilder) answered(ev *event.Event, d event.ModelResponse) {
	t.measureCall(ev, d.Model, "")
	t.measureTokens(d)
	s := t.chat(ev)
	t.add(&s, responseModel, d.Model)
	t.add(&s, responseID, d.ResponseID)
	if d.FinishReason != "" {
		t.add(&s, finishReasons, []string{string(d.FinishReason)})
	}
	t.usage(&s, d.Usage)
	if d.Cost.Priced {
		t.add(&s, costUSD, d.Cost.USD)
	}
	if t.content {
		t.add(&s, outputMessages, outputOf(d))
	}
	t.put(s)
}

// outputOf returns an answer in the format of the conventions.
func outputOf(d event.ModelResponse) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	parts := []part{}
	for _, p := range d.Parts {
		if text, ok := p.(llm.Text); ok {
			parts = append(parts, part{"text", text.Text})
		}
	}
	if len(parts) == 0 {
		return ""
	}
	b, _ := json.Marshal([]any{map[string]any{"role": "assistant", "parts": parts, "finish_reason": d.FinishReason}})
	return string(b)
}

// unanswered ends a model call without an answer.
func (t *spanBuilder) unanswered(ev *event.Event, why string) {
	if t.asked.attempts > 0 {
		t.measureCall(ev, "", cmp.Or(why, "_OTHER"))
		s := t.chat(ev)
		t.fail(&s, why)
		t.put(s)
	}
}

// toolDone ends the span of a call. A refused call has no span.
func (t *spanBuilder) toolDone(ev *event.Event, d event.ToolResult) {
	c := t.calls[d.CallID]
	delete(t.calls, d.CallID)
	if c.attempts == 0 && d.DurationMs == 0 && d.ErrorType != event.ErrorInDoubt {
		return
	}
	since := c.since
	if since.IsZero() {
		since = ev.Time.Add(-time.Duration(d.DurationMs) * time.Millisecond)
	}
	t.measureTool(d, ev.Time.Sub(since))
	s := t.span(d.CallID, "execute_tool", d.Tool, since, ev)
	t.add(&s, toolName, d.Tool)
	t.add(&s, toolCall, d.CallID)
	if c.attempts > 1 {
		t.add(&s, attempts, c.attempts)
	}
	if t.content {
		t.add(&s, toolArguments, c.args)
		t.add(&s, toolResult, d.Output)
	}
	if d.IsError {
		t.fail(&s, string(d.ErrorType))
	}
	t.put(s)
}

// ended returns the span of the run itself.
func (t *spanBuilder) ended(ev *event.Event, o *event.Outcome) {
	operationName, called := "invoke_agent", agentName
	if strings.EqualFold(t.run.Kind, "workflow") {
		operationName, called = "invoke_workflow", workflowName
	}
	t.measureRun(ev, o, operationName)
	s := t.span("", operationName, t.run.Name, t.run.Began, ev)
	s.ParentSpanID = t.run.Trace.Parent
	t.add(&s, called, t.run.Name)
	t.add(&s, agentID, t.run.Run)
	if t.dialect == stable {
		t.add(&s, provider, t.provider)
	}
	t.add(&s, inputTokens, o.Usage.Input)
	t.add(&s, outputTokens, o.Usage.Output)
	t.add(&s, runReason, string(o.Reason))
	if o.Cost != nil && o.Cost.Priced {
		t.add(&s, costUSD, o.Cost.USD)
	}
	if !o.OK {
		t.fail(&s, string(o.Reason))
	}
	t.put(s)
}
