package signals

import (
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
)

// modelLabels returns the labels of a model call.
func modelLabels(called string) []label {
	company, model := target(called)
	return []label{{operation, "chat"}, {provider, company}, {requestModel, model}}
}

// measureCall records the duration of the model call that just ended.
func (t *spanBuilder) measureCall(ev *event.Event, model, failure string) {
	if t.meter != nil && !t.asked.since.IsZero() {
		t.meter.record(callDuration, ev.Time.Sub(t.asked.since).Seconds(), append(modelLabels(t.asked.model), label{responseModel, model}, label{errorType, failure})...)
	}
}

// measureTokens records the token usage of an answer.
func (t *spanBuilder) measureTokens(d event.ModelResponse) {
	if t.meter == nil {
		return
	}
	of := append(modelLabels(t.asked.model), label{responseModel, d.Model})
	t.meter.record(tokenUsage, float64(d.Usage.Input), append(of, label{tokenType, "input"})...)
	t.meter.record(tokenUsage, float64(d.Usage.Output), append(of, label{tokenType, "output"})...)
	for what, n := range map[measure]int64{
		usedInput: d.Usage.Input, usedOutput: d.Usage.Output, usedCacheRead: d.Usage.CacheRead, usedCacheWrite: d.Usage.CacheWrite, usedReasoning: d.Usage.Reasoning,
	} {
		if n > 0 {
			t.meter.record(what, float64(n), of...)
		}
	}
}

func (t *spanBuilder) measureTool(d event.ToolResult, took time.Duration) {
	t.toolCalls++
	failure := ""
	if d.IsError {
		failure = string(d.ErrorType)
	}
	t.meter.record(toolDuration, took.Seconds(), label{toolName, d.Tool}, label{errorType, failure})
}

// measureRun records the run that just ended.
func (t *spanBuilder) measureRun(ev *event.Event, o *event.Outcome, called string) {
	what, who, failure := agentDuration, label{agentName, t.run.Name}, ""
	if called == "invoke_workflow" {
		what, who = workflowDuration, label{workflowName, t.run.Name}
	}
	if !o.OK {
		failure = string(o.Reason)
	}
	t.meter.record(what, ev.Time.Sub(t.run.Began).Seconds(), who, label{errorType, failure})
	if t.whole && what == agentDuration {
		t.meter.record(agentModelCalls, float64(t.modelCalls), who)
		t.meter.record(agentToolCalls, float64(t.toolCalls), who)
	}
}

// chunks returns a function that measures the pieces of a streamed answer.
func (m *meter) chunks(c perform.ModelCall) func() {
	what, last, of := firstChunk, time.Now(), modelLabels(c.Target)
	return func() {
		now := time.Now()
		m.record(what, now.Sub(last).Seconds(), of...)
		what, last = nextChunk, now
	}
}
