package signals_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/signals"
)

// measured is a metric in the form that a collector reads.
type measured struct {
	Name, Unit     string
	Histogram, Sum *struct {
		Temporality int  `json:"aggregationTemporality"`
		Monotonic   bool `json:"isMonotonic"`
		Points      []reading
	}
}

type reading struct {
	Attributes []struct {
		Key   string
		Value struct{ StringValue string }
	}
	Start   string `json:"startTimeUnixNano"`
	Time    string `json:"timeUnixNano"`
	Int     string `json:"asInt"`
	Count   string
	Sum     float64
	Buckets []string  `json:"bucketCounts"`
	Bounds  []float64 `json:"explicitBounds"`
}

// is returns the values of a reading's attributes.
func (r reading) is() string {
	var all []string
	for _, a := range r.Attributes {
		all = append(all, a.Key+"="+a.Value.StringValue)
	}
	return strings.Join(all, " ")
}

func (m measured) points() []reading {
	if m.Sum != nil {
		return m.Sum.Points
	}
	return m.Histogram.Points
}

// metricsIn returns the metrics of the last export.
func metricsIn(t *testing.T, text string) map[string]measured {
	t.Helper()
	out := map[string]measured{}
	for line := range strings.Lines(text) {
		var r struct {
			ResourceMetrics []struct {
				Resource     struct{ Attributes []struct{ Key string } }
				ScopeMetrics []struct{ Metrics []measured }
			}
		}
		// OTLP names the list dataPoints for both types.
		if err := json.Unmarshal([]byte(strings.ReplaceAll(line, `"dataPoints"`, `"points"`)), &r); err != nil {
			t.Fatal(err)
		}
		for _, rm := range r.ResourceMetrics {
			if len(rm.Resource.Attributes) < 2 {
				t.Errorf("the resource is %+v", rm.Resource)
			}
			clear(out)
			for _, m := range rm.ScopeMetrics[0].Metrics {
				out[m.Name] = m
			}
		}
	}
	return out
}

// played returns the metrics of a run with two model calls and a tool call between
// them.
func played(t *testing.T, optIn string) map[string]measured {
	t.Helper()
	file := filepath.Join(t.TempDir(), "otel.jsonl")
	vars := map[string]string{"PAWL_OTEL_FILE": file, "OTEL_SEMCONV_STABILITY_OPT_IN": optIn}
	play(t, signals.FromEnvironment(func(n string) string { return vars[n] }), false)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return metricsIn(t, string(text))
}

func TestModelCallsAreMeasuredInTheConventionsBuckets(t *testing.T) {
	got := played(t, "")
	asked := "gen_ai.operation.name=chat gen_ai.provider.name=scripted gen_ai.request.model=test"
	for _, name := range []string{"gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.token.usage"} {
		m, has := got[name]
		if !has || m.Histogram == nil || m.Histogram.Temporality != 2 {
			t.Fatalf("%s is %+v", name, m)
		}
		for _, p := range m.points() {
			if !strings.HasPrefix(p.is(), asked) || p.Start == "" || p.Start > p.Time || len(p.Buckets) != len(p.Bounds)+1 {
				t.Errorf("%s has %+v", name, p)
			}
		}
	}
	if p := got["gen_ai.client.operation.duration"].points(); len(p) != 1 || p[0].Count != "2" || p[0].Sum <= 0 {
		t.Errorf("durations %+v", p)
	}
	if b := got["gen_ai.client.operation.duration"].points()[0].Bounds; len(b) != 14 || b[0] != 0.01 || b[13] != 81.92 {
		t.Errorf("the buckets of seconds are %v", b)
	}
	tokens := map[string]reading{}
	for _, p := range got["gen_ai.client.token.usage"].points() {
		tokens[p.Attributes[len(p.Attributes)-1].Value.StringValue] = p
	}
	in, out := tokens["input"], tokens["output"]
	if len(tokens) != 2 || in.Count != "2" || in.Sum != 18 || out.Sum != 8 {
		t.Fatalf("tokens %+v", tokens)
	}
	// 7 and 11 are between 4 and 16; 3 is between 1 and 4.
	if b := in.Bounds; len(b) != 14 || b[0] != 1 || b[13] != 67108864 || in.Buckets[2] != "2" || out.Buckets[1] != "1" || out.Buckets[2] != "1" {
		t.Errorf("the buckets of tokens are %v %v %v", b, in.Buckets, out.Buckets)
	}
}

func TestTheNewerDialectCountsTokensAndMeasuresAgentsAndTools(t *testing.T) {
	got := played(t, "gen_ai_latest_experimental")
	for name, want := range map[string]string{
		"gen_ai.client.inference.usage.input_tokens": "18", "gen_ai.client.inference.usage.output_tokens": "8",
		"gen_ai.client.inference.usage.cache_write.input_tokens": "2",
	} {
		if m := got[name]; m.Sum == nil || !m.Sum.Monotonic || len(m.points()) != 1 || m.points()[0].Int != want {
			t.Errorf("%s is %+v, want %s", name, m, want)
		}
	}
	for name, want := range map[string]struct {
		is  string
		sum float64
	}{
		"gen_ai.client.inference.duration": {}, "gen_ai.client.inference.time_to_first_chunk": {},
		"gen_ai.invoke_agent.duration":        {is: "gen_ai.agent.name=worker"},
		"gen_ai.invoke_agent.inference_calls": {is: "gen_ai.agent.name=worker", sum: 2},
		"gen_ai.invoke_agent.tool_calls":      {is: "gen_ai.agent.name=worker", sum: 1},
		"gen_ai.execute_tool.duration":        {is: "gen_ai.tool.name=echo error.type=tool_error"},
	} {
		m := got[name]
		if m.Histogram == nil || len(m.points()) == 0 {
			t.Errorf("%s is %+v", name, m)
			continue
		}
		if p := m.points()[0]; want.is != "" && p.is() != want.is || want.sum != 0 && p.Sum != want.sum {
			t.Errorf("%s is %s: %+v", name, p.is(), p)
		}
	}
	for _, other := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} {
		if _, has := got[other]; has {
			t.Errorf("there is %s as well", other)
		}
	}
}

func TestMetricsAreSentToACollectorOfTheirOwn(t *testing.T) {
	h, url := collecting(t)
	for _, vars := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": url + "/own", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "authorization=Basic%20abc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abc", "OTEL_METRIC_EXPORT_INTERVAL": "10"},
	} {
		h.bodies = nil
		play(t, signals.FromEnvironment(func(n string) string { return vars[n] }), false)
		path := map[bool]string{true: "/own", false: "/v1/metrics"}[vars["OTEL_EXPORTER_OTLP_ENDPOINT"] == ""]
		if h.last.URL.Path != path || h.last.Header.Get("Authorization") != "Basic abc" {
			t.Errorf("it went to %s with %v", h.last.URL.Path, h.last.Header)
		}
		text := strings.Join(h.bodies, "\n")
		if got := metricsIn(t, text); len(got) < 3 || len(spansIn(t, text)) > 0 {
			t.Errorf("the collector got %s", text)
		}
	}
	_, refusing := collecting(t, http.StatusUnauthorized)
	x, err := signals.Open(signals.Options{Metrics: signals.Target{Endpoint: refusing}, Latest: true})
	if err != nil {
		t.Fatal(err)
	}
	tell(x)
	if err := x.Close(); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("closing says %v", err)
	}
}
