package signals

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
)

// Counter identifies a Prometheus counter.
type Counter int

// The counters.
const (
	RunStates Counter = iota
	ModelCalls
	ModelTokens
	ModelCost
	ToolCalls
	Events
	HTTPRequests
	TakenOver
	counters
)

// family is the exported form of a counter.
type family struct {
	name, help string
	labels     []string
}

// families returns the name, help text and labels of each counter. No label contains a
// run's id or text of a model, so the number of series is bounded.
func families() [counters]family {
	return [counters]family{
		RunStates:    {"pawl_runs_total", "Times that runs driven here came to a state.", []string{"kind", "state"}},
		ModelCalls:   {"pawl_model_calls_total", "Attempts at model calls that have ended.", []string{"model", "outcome"}},
		ModelTokens:  {"pawl_model_tokens_total", "Tokens of model calls.", []string{"model", "type"}},
		ModelCost:    {"pawl_model_cost_dollars_total", "What model calls cost, where prices are known.", []string{"model"}},
		ToolCalls:    {"pawl_tool_calls_total", "Tool calls that are settled.", []string{"outcome"}},
		Events:       {"pawl_events_total", "Events that were added to the journal here.", nil},
		TakenOver:    {"pawl_leases_taken_over_total", "Runs that this process took over from one that left them.", nil},
		HTTPRequests: {"pawl_http_requests_total", "Requests that were let through and answered.", []string{"method", "path", "code"}},
	}
}

// Metrics counts the activity of runs and servers for Prometheus. It is safe for
// concurrent use.
type Metrics struct {
	mu     sync.Mutex
	series [counters]map[string]float64
}

// NewMetrics returns metrics whose counters are zero.
func NewMetrics() *Metrics {
	m := &Metrics{}
	for i := range m.series {
		m.series[i] = map[string]float64{}
	}
	return m
}

// Add adds n to a counter. values contains one value for each of its labels.
func (m *Metrics) Add(c Counter, n float64, values ...string) {
	key := strings.Join(values, "\x00")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.series[c][key] += n
}

// Observer returns the observer that feeds the metrics from an engine.
func (m *Metrics) Observer() perform.Observer {
	return perform.Observer{Run: func(r perform.RunInfo) func(*event.Event) {
		kind, model := strings.ToLower(r.Kind), ""
		return func(ev *event.Event) {
			m.Add(Events, 1)
			switch d := ev.Data.(type) {
			case event.RunStarted, event.RunForked:
				m.Add(RunStates, 1, kind, "started")
			case event.RunResumed:
				m.Add(RunStates, 1, kind, "resumed")
			case event.RunParked:
				m.Add(RunStates, 1, kind, "parked")
			case event.RunCompleted:
				m.Add(RunStates, 1, kind, string(d.Outcome.Status))
			case event.ModelRequested:
				model = d.Model
			case event.ModelResponse:
				m.called(model, "ok", d.Usage, d.Cost)
			case event.ModelAttemptFailed:
				m.called(d.Model, string(d.Class), d.Usage, d.Cost)
			case event.ToolResult:
				outcome := "ok"
				if d.IsError {
					outcome = string(d.ErrorType)
				}
				m.Add(ToolCalls, 1, outcome)
			}
		}
	}}
}

func (m *Metrics) called(model, outcome string, u llm.Usage, cost llm.Cost) {
	m.Add(ModelCalls, 1, model, outcome)
	for kind, n := range map[string]int64{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite, "reasoning": u.Reasoning} {
		if n > 0 {
			m.Add(ModelTokens, float64(n), model, kind)
		}
	}
	if cost.Priced {
		m.Add(ModelCost, cost.USD, model)
	}
}

// Text returns the counters in Prometheus' text format.
func (m *Metrics) Text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for i, f := range families() {
		f.write(&b, "counter", m.series[i])
	}
	return b.String()
}

// Gauge returns the text of a gauge; the keys of its values are those of [Metrics.Add],
// joined by NUL.
func Gauge(name, help string, labels []string, values map[string]float64) string {
	var b strings.Builder
	family{name, help, labels}.write(&b, "gauge", values)
	return b.String()
}

func (f family) write(b *strings.Builder, kind string, series map[string]float64) {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	b.WriteString("# HELP " + f.name + " " + f.help + "\n# TYPE " + f.name + " " + kind + "\n")
	for _, key := range slices.Sorted(maps.Keys(series)) {
		b.WriteString(f.name)
		for j, v := range strings.Split(key, "\x00") {
			if j < len(f.labels) {
				b.WriteString(map[bool]string{true: "{", false: ","}[j == 0] + f.labels[j] + `="` + escape.Replace(v) + `"`)
			}
		}
		if len(f.labels) > 0 {
			b.WriteByte('}')
		}
		b.WriteString(" " + strconv.FormatFloat(series[key], 'g', -1, 64) + "\n")
	}
}
