package signals

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Options configure what is exported, where, and in which dialect.
type Options struct {
	// File is the path of a file to which OTLP in JSON is appended, or empty.
	File string
	// Traces and Metrics are the targets of the two signals.
	Traces, Metrics Target
	// Interval is the interval of metrics; 0 means one minute.
	Interval time.Duration
	// Service is the service name, and Resource lists further resource attributes.
	Service  string
	Resource [][2]string
	// Latest selects the newer dialect. Content adds the texts of answers, calls and
	// results as the journal stores them, without secrets.
	Latest, Content bool
	// Disabled turns all exports off.
	Disabled bool
}

// Target is the destination of one signal besides the file.
type Target struct {
	// Endpoint is the URL of a collector, or empty. Headers are sent with each request.
	Endpoint string
	Headers  [][2]string
	// Protocol is the configured form of OTLP; empty accepts any.
	Protocol string
	// Off disables the signal, also in the file.
	Off bool
}

// FromEnvironment reads OpenTelemetry's standard variables and this program's own.
func FromEnvironment(getenv func(string) string) Options {
	return Options{
		File:     cmp.Or(getenv("ALFRED_OTEL_FILE"), getenv("PAWL_OTEL_FILE")),
		Traces:   targetOf(getenv, "TRACES", "/v1/traces"),
		Metrics:  targetOf(getenv, "METRICS", "/v1/metrics"),
		Interval: interval(getenv("OTEL_METRIC_EXPORT_INTERVAL")),
		Service:  getenv("OTEL_SERVICE_NAME"),
		Resource: unescaped(pairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))),
		Latest:   slices.Contains(strings.Split(getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), ","), "gen_ai_latest_experimental"),
		Content:  content(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")),
		Disabled: strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"),
	}
}

// targetOf returns the target of a signal. The signal's own endpoint is used as it is.
// The common endpoint gets the signal's path; it defaults to localhost if only an OTLP
// exporter is selected.
func targetOf(getenv func(string) string, signal, path string) Target {
	one := func(what string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+what), getenv("OTEL_EXPORTER_OTLP_"+what))
	}
	exporter := getenv("OTEL_" + signal + "_EXPORTER")
	t := Target{Headers: unescaped(pairs(one("HEADERS"))), Protocol: one("PROTOCOL"), Off: exporter == "none"}
	own, all := getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if all == "" && exporter == "otlp" {
		all = "http://localhost:4318"
	}
	switch {
	case own != "":
		t.Endpoint = own
	case all != "":
		t.Endpoint = strings.TrimSuffix(all, "/") + path
	}
	return t
}

// interval parses milliseconds. It returns 0 for invalid values.
func interval(ms string) time.Duration {
	n, err := strconv.ParseInt(ms, 10, 32)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// unescaped decodes percent-encoded values in place.
func unescaped(list [][2]string) [][2]string {
	for i, pair := range list {
		if plain, err := url.PathUnescape(pair[1]); err == nil {
			list[i][1] = plain
		}
	}
	return list
}

// Parent returns the trace context in which this process was started, if any.
func Parent(getenv func(string) string) event.Trace {
	t, _ := event.ParseTraceparent(getenv("TRACEPARENT"))
	return t
}

// content reports whether a capture mode includes texts in spans.
func content(mode string) bool {
	return slices.Contains([]string{"true", "span_only", "span_and_event"}, strings.ToLower(mode))
}

// pairs parses "key=value,key=value". It skips malformed pairs.
func pairs(list string) (out [][2]string) {
	for item := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(item, "=")
		if key = strings.TrimSpace(key); ok && key != "" {
			out = append(out, [2]string{key, strings.TrimSpace(value)})
		}
	}
	return out
}

// exports reports whether a signal has any destination.
func (o Options) exports(t Target) bool {
	return !o.Disabled && !t.Off && (o.File != "" || t.Endpoint != "")
}

// wrong returns an error if the exporter does not support the target.
func (t Target) wrong() error {
	if t.Endpoint == "" || t.Off {
		return nil
	}
	if t.Protocol == "grpc" {
		return errors.New("signals: OTLP is sent over HTTP; set OTEL_EXPORTER_OTLP_PROTOCOL=http/json and the collector's address for HTTP, often port 4318")
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("signals: OTEL_EXPORTER_OTLP_ENDPOINT is no address that begins with http:// or https://")
	}
	return nil
}

func (o Options) dialect() dialect {
	if o.Latest {
		return latest
	}
	return stable
}

// resource returns the resource attributes. Each process has its own instance id,
// because its counters start at zero.
func (o Options) resource() [][2]string {
	service := o.Service
	out := [][2]string{{"service.instance.id", rand.Text()}}
	for _, pair := range o.Resource {
		if pair[0] == "service.instance.id" {
			out[0][1] = pair[1]
		} else if pair[0] != "service.name" {
			out = append(out, pair)
		} else if service == "" {
			service = pair[1]
		}
	}
	return append(out, [2]string{"service.name", cmp.Or(service, "pawl")})
}
