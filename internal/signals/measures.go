package signals

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
)

// measure identifies a metric.
type measure int

const (
	callDuration measure = iota
	firstChunk
	nextChunk
	tokenUsage
	usedInput
	usedOutput
	usedCacheRead
	usedCacheWrite
	usedReasoning
	agentDuration
	agentModelCalls
	agentToolCalls
	toolDuration
	workflowDuration
	measures
)

// instrument is the exported form of a measure.
type instrument struct {
	name name
	unit string
	help string
	// whole marks integer values, and sum a monotonic sum. Other measures are
	// histograms.
	whole, sum bool
}

// instruments returns the instruments of all measures.
func instruments() [measures]instrument {
	const seconds, tokens, calls = "s", "{token}", "{call}"
	return [measures]instrument{
		callDuration:     {name: name{"gen_ai.client.operation.duration", "gen_ai.client.inference.duration"}, unit: seconds, help: "How long a model call took, with all its attempts."},
		firstChunk:       {name: name{"gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.inference.time_to_first_chunk"}, unit: seconds, help: "How long the first piece of a streamed answer took."},
		nextChunk:        {name: name{"gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.inference.time_per_output_chunk"}, unit: seconds, help: "How long each further piece of a streamed answer took."},
		tokenUsage:       {name: name{"gen_ai.client.token.usage", ""}, unit: tokens, whole: true, help: "Tokens of a model call."},
		usedInput:        {name: name{"", "gen_ai.client.inference.usage.input_tokens"}, unit: tokens, whole: true, sum: true, help: "Input tokens, those from a cache too."},
		usedOutput:       {name: name{"", "gen_ai.client.inference.usage.output_tokens"}, unit: tokens, whole: true, sum: true, help: "Output tokens, those of reasoning too."},
		usedCacheRead:    {name: name{"", "gen_ai.client.inference.usage.cache_read.input_tokens"}, unit: tokens, whole: true, sum: true, help: "Input tokens that came from a cache."},
		usedCacheWrite:   {name: name{"", "gen_ai.client.inference.usage.cache_write.input_tokens"}, unit: tokens, whole: true, sum: true, help: "Input tokens that went into a cache."},
		usedReasoning:    {name: name{"", "gen_ai.client.inference.usage.reasoning.output_tokens"}, unit: tokens, whole: true, sum: true, help: "Output tokens of reasoning."},
		agentDuration:    {name: name{"", "gen_ai.invoke_agent.duration"}, unit: seconds, help: "How long a run of an agent took."},
		agentModelCalls:  {name: name{"", "gen_ai.invoke_agent.inference_calls"}, unit: calls, whole: true, help: "Model calls of an agent's run."},
		agentToolCalls:   {name: name{"", "gen_ai.invoke_agent.tool_calls"}, unit: calls, whole: true, help: "Tool calls of an agent's run."},
		toolDuration:     {name: name{"", "gen_ai.execute_tool.duration"}, unit: seconds, help: "How long a tool call took."},
		workflowDuration: {name: name{"", "gen_ai.invoke_workflow.duration"}, unit: seconds, help: "How long a run of a workflow took."},
	}
}

// bounds returns the upper bounds of the histogram buckets that the conventions
// recommend. Each is a fixed multiple of the previous one.
func (i instrument) bounds() []float64 {
	limit, factor := 1.0, 4.0
	if i.unit == "s" {
		limit, factor = 0.01, 2
	}
	out := make([]float64, 14)
	for n := range out {
		out[n] = limit
		limit *= factor
	}
	return out
}

// most limits the series of a measure, because the names of runs are arbitrary. Further
// label sets share one overflow series.
const most = 2000

// label is an attribute of a series. A label without a value is omitted.
type label struct {
	term  term
	value string
}

// meter aggregates measured values by series. It is safe for concurrent use.
type meter struct {
	names   [terms]name
	tells   [measures]instrument
	bounds  [measures][]float64
	dialect dialect
	began   time.Time

	mu     sync.Mutex
	series [measures]map[string]*series
}

// series aggregates the values with one set of attributes.
type series struct {
	attributes    []attribute
	count         int64
	sum, min, max float64
	buckets       []int64
}

func newMeter(d dialect) *meter {
	m := &meter{names: names(), tells: instruments(), dialect: d, began: time.Now()}
	for i := range m.series {
		m.series[i], m.bounds[i] = map[string]*series{}, m.tells[i].bounds()
	}
	return m
}

// record adds a value. It ignores measures that the dialect does not name.
func (m *meter) record(what measure, value float64, labels ...label) {
	if m == nil || m.tells[what].name[m.dialect] == "" {
		return
	}
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.value)
		key.WriteByte(0)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[what][key.String()]
	if s == nil {
		s = m.begin(what, key.String(), labels)
	}
	if s.count++; s.count == 1 {
		s.min, s.max = value, value
	}
	s.sum, s.min, s.max = s.sum+value, min(s.min, value), max(s.max, value)
	if !m.tells[what].sum {
		at, _ := slices.BinarySearch(m.bounds[what], value)
		s.buckets[at]++
	}
}

// begin adds a series, or returns the overflow series if there are too many.
func (m *meter) begin(what measure, key string, labels []label) *series {
	s := &series{buckets: make([]int64, len(m.bounds[what])+1)}
	if len(m.series[what]) >= most {
		key, labels = "overflow", nil
		if there := m.series[what][key]; there != nil {
			return there
		}
		s.attributes = []attribute{{"otel.metric.overflow", valueOf(true)}}
	}
	for _, l := range labels {
		if name := m.names[l.term][m.dialect]; name != "" && l.value != "" {
			s.attributes = append(s.attributes, attribute{name, valueOf(l.value)})
		}
	}
	m.series[what][key] = s
	return s
}

// snapshot returns the totals since the meter was created.
func (m *meter) snapshot(now time.Time) []metric {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []metric
	for what, all := range m.series {
		if len(all) == 0 {
			continue
		}
		i := m.tells[what]
		points := make([]point, 0, len(all))
		for _, key := range slices.Sorted(maps.Keys(all)) {
			points = append(points, all[key].point(i, m.bounds[what], at(m.began), at(now)))
		}
		entry := metric{Name: i.name[m.dialect], Description: i.help, Unit: i.unit}
		if i.sum {
			entry.Sum = &aggregate{Temporality: cumulative, Monotonic: true, Points: points}
		} else {
			entry.Histogram = &aggregate{Temporality: cumulative, Points: points}
		}
		out = append(out, entry)
	}
	return out
}

func (s *series) point(i instrument, bounds []float64, from, to nanos) point {
	p := point{Attributes: s.attributes, Start: from, Time: to}
	if i.sum {
		p.Int = strconv.FormatInt(int64(s.sum), 10)
		return p
	}
	p.Count, p.Bounds = strconv.FormatInt(s.count, 10), bounds
	sum, least, greatest := s.sum, s.min, s.max
	p.Sum, p.Min, p.Max = &sum, &least, &greatest
	for _, n := range s.buckets {
		p.Buckets = append(p.Buckets, strconv.FormatInt(n, 10))
	}
	return p
}

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
