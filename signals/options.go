package signals

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Options say where to, and in which words.
type Options struct {
	// File is a file that lines of OTLP in JSON are appended to, empty for none.
	File string
	// Endpoint is the address of a collector that spans are sent to, empty for none,
	// and Headers what it is sent with each request.
	Endpoint string
	Headers  [][2]string
	// Protocol is the form of OTLP that is asked for; empty for any.
	Protocol string
	// Service names who exports, with Resource as further attributes.
	Service  string
	Resource [][2]string
	// Latest asks for the newer dialect, and Content for the texts of answers, calls
	// and results, as the journal has them: without secrets.
	Latest, Content bool
	// Disabled switches everything off, and NoTraces the spans.
	Disabled, NoTraces bool
}

// FromEnvironment reads the variables that OpenTelemetry names, and this program's own.
func FromEnvironment(getenv func(string) string) Options {
	return Options{
		File:     cmp.Or(getenv("ALFRED_OTEL_FILE"), getenv("PAWL_OTEL_FILE")),
		Endpoint: endpoint(getenv),
		Headers:  unescaped(pairs(cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), getenv("OTEL_EXPORTER_OTLP_HEADERS")))),
		Protocol: cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL")),
		Service:  getenv("OTEL_SERVICE_NAME"),
		Resource: unescaped(pairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))),
		Latest:   slices.Contains(strings.Split(getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), ","), "gen_ai_latest_experimental"),
		Content:  content(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")),
		Disabled: strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"),
		NoTraces: getenv("OTEL_TRACES_EXPORTER") == "none",
	}
}

// endpoint is the address that spans are sent to: as it is where it is that of spans
// alone, below that of all signals, and the usual one where only the exporter is named.
func endpoint(getenv func(string) string) string {
	if own := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" {
		return own
	}
	all := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if all == "" && getenv("OTEL_TRACES_EXPORTER") == "otlp" {
		all = "http://localhost:4318"
	}
	if all == "" {
		return ""
	}
	return strings.TrimSuffix(all, "/") + "/v1/traces"
}

// unescaped takes the percent-encoding off values.
func unescaped(list [][2]string) [][2]string {
	for i, pair := range list {
		if plain, err := url.PathUnescape(pair[1]); err == nil {
			list[i][1] = plain
		}
	}
	return list
}

// Parent is the trace that this process was started in, if any.
func Parent(getenv func(string) string) event.Trace {
	t, _ := event.ParseTraceparent(getenv("TRACEPARENT"))
	return t
}

// content reports whether texts are to be in spans.
func content(mode string) bool {
	return slices.Contains([]string{"true", "span_only", "span_and_event"}, strings.ToLower(mode))
}

// pairs reads "key=value,key=value"; what is no pair is left out.
func pairs(list string) (out [][2]string) {
	for item := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(item, "=")
		if key = strings.TrimSpace(key); ok && key != "" {
			out = append(out, [2]string{key, strings.TrimSpace(value)})
		}
	}
	return out
}

// off reports whether there is nothing to do.
func (o Options) off() bool { return o.Disabled || o.NoTraces || o.File == "" && o.Endpoint == "" }

// wrong says what cannot be done as asked.
func (o Options) wrong() error {
	if o.Endpoint == "" {
		return nil
	}
	if o.Protocol == "grpc" {
		return errors.New("signals: OTLP is sent over HTTP; set OTEL_EXPORTER_OTLP_PROTOCOL=http/json and the collector's address for HTTP, often port 4318")
	}
	if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
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

// resource are the attributes of who exports.
func (o Options) resource() [][2]string {
	service := o.Service
	out := [][2]string{}
	for _, pair := range o.Resource {
		if pair[0] != "service.name" {
			out = append(out, pair)
		} else if service == "" {
			service = pair[1]
		}
	}
	return append(out, [2]string{"service.name", cmp.Or(service, "pawl")})
}
