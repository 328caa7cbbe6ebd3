package signals

import (
	"strconv"
	"time"
)

// The types of this file are the JSON encoding of OTLP.

type traceRequest struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name string `json:"name"`
}

// Span kinds.
const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
)

// statusError is the status code of a failed operation.
const statusError = 2

type span struct {
	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        nanos       `json:"startTimeUnixNano"`
	End          nanos       `json:"endTimeUnixNano"`
	Attributes   []attribute `json:"attributes"`
	Status       status      `json:"status"`
}

type status struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code,omitempty"`
}

// nanos is a time in nanoseconds, which OTLP encodes as a string.
type nanos string

func at(t time.Time) nanos { return nanos(strconv.FormatInt(t.UnixNano(), 10)) }

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value is a union: exactly one field is set.
type value struct {
	String *string  `json:"stringValue,omitempty"`
	Bool   *bool    `json:"boolValue,omitempty"`
	Int    *string  `json:"intValue,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
	Array  *arrayOf `json:"arrayValue,omitempty"`
}

type arrayOf struct {
	Values []value `json:"values"`
}

func valueOf(v any) value {
	switch v := v.(type) {
	case bool:
		return value{Bool: &v}
	case int64:
		s := strconv.FormatInt(v, 10)
		return value{Int: &s}
	case float64:
		return value{Double: &v}
	case []string:
		a := &arrayOf{Values: []value{}}
		for i := range v {
			a.Values = append(a.Values, value{String: &v[i]})
		}
		return value{Array: a}
	case string:
		return value{String: &v}
	}
	return value{}
}

type metricsRequest struct {
	ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
}

type resourceMetrics struct {
	Resource     resource       `json:"resource"`
	ScopeMetrics []scopeMetrics `json:"scopeMetrics"`
}

type scopeMetrics struct {
	Scope   scope    `json:"scope"`
	Metrics []metric `json:"metrics"`
}

// metric has either a Histogram or a Sum.
type metric struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Unit        string     `json:"unit"`
	Histogram   *aggregate `json:"histogram,omitempty"`
	Sum         *aggregate `json:"sum,omitempty"`
}

// cumulative marks points that count from the start of the process.
const cumulative = 2

type aggregate struct {
	Temporality int     `json:"aggregationTemporality"`
	Monotonic   bool    `json:"isMonotonic,omitempty"`
	Points      []point `json:"dataPoints"`
}

// point is a data point of a histogram or a sum. A sum uses only Int.
type point struct {
	Attributes []attribute `json:"attributes"`
	Start      nanos       `json:"startTimeUnixNano"`
	Time       nanos       `json:"timeUnixNano"`
	Int        string      `json:"asInt,omitempty"`
	Count      string      `json:"count,omitempty"`
	Sum        *float64    `json:"sum,omitempty"`
	Min        *float64    `json:"min,omitempty"`
	Max        *float64    `json:"max,omitempty"`
	Buckets    []string    `json:"bucketCounts,omitempty"`
	Bounds     []float64   `json:"explicitBounds,omitempty"`
}
