package signals

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
)

const (
	// queued is the capacity of the span queue. The exporter drops spans beyond it, so
	// that no run waits.
	queued = 8192
	// batched is the maximum size of a batch of spans, and linger the maximum delay of
	// its first span.
	batched = 512
	linger  = time.Second
	// reported is the default interval of metrics.
	reported = time.Minute
	// flushTimeout limits how long Close waits for the last batches.
	flushTimeout = 5 * time.Second
)

// Exporter exports the spans and metrics of runs to the targets in its options. Call
// Close to send the last batch.
type Exporter struct {
	options  Options
	names    [terms]name
	resource resource
	// spans feeds traces and is nil if traces are off; meter feeds metrics.
	spans           chan span
	meter           *meter
	traces, metrics []sink
	file            *os.File
	lost            atomic.Int64
	// failed is the last error of sending spans, and unsent the error of the last
	// attempt to send metrics, nil after a success.
	failed, unsent error

	work   sync.WaitGroup
	ending chan struct{}
	once   sync.Once
	ctx    context.Context
	stop   context.CancelFunc
}

// sink receives exports as OTLP in JSON.
type sink interface {
	send(ctx context.Context, body []byte) error
}

// Open starts an exporter. It returns nil if the options export nothing.
func Open(o Options) (*Exporter, error) {
	traces, metrics := o.exports(o.Traces), o.exports(o.Metrics)
	if !traces && !metrics {
		return nil, nil
	}
	if err := cmp.Or(o.Traces.wrong(), o.Metrics.wrong()); err != nil {
		return nil, err
	}
	x := &Exporter{options: o, names: names(), ending: make(chan struct{})}
	for _, pair := range o.resource() {
		x.resource.Attributes = append(x.resource.Attributes, attribute{pair[0], valueOf(pair[1])})
	}
	if o.File != "" {
		f, err := os.OpenFile(o.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("signals: open the file of OpenTelemetry: %w", err)
		}
		x.file = f
	}
	x.ctx, x.stop = context.WithCancel(context.Background())
	if traces {
		x.spans, x.traces = make(chan span, queued), x.sinks(o.Traces)
		x.work.Go(x.sendSpans)
	}
	if metrics {
		x.meter, x.metrics = newMeter(o.dialect()), x.sinks(o.Metrics)
		x.work.Go(x.sendMetrics)
	}
	return x, nil
}

// sinks returns the destinations of a signal.
func (x *Exporter) sinks(t Target) (out []sink) {
	if x.file != nil {
		out = append(out, fileSink{x.file})
	}
	if t.Endpoint != "" {
		out = append(out, newCollector(t.Endpoint, t.Headers))
	}
	return out
}

// Observer returns the observer that feeds the exporter from an engine.
func (x *Exporter) Observer() perform.Observer {
	o := perform.Observer{Traces: x.spans != nil, Run: func(r perform.RunInfo) func(*event.Event) {
		t := &spanBuilder{run: r, names: &x.names, dialect: x.options.dialect(), content: x.options.Content, put: x.put, meter: x.meter, calls: map[string]toolCallSpan{}}
		return t.event
	}}
	if x.meter != nil {
		o.Chunks = x.meter.chunks
	}
	return o
}

func (x *Exporter) put(s span) {
	if x.spans == nil {
		return
	}
	select {
	case x.spans <- s:
	default:
		x.lost.Add(1)
	}
}

// Close sends the remaining data and returns an error if some could not be sent. No
// engine may use the exporter afterwards.
func (x *Exporter) Close() error {
	x.once.Do(func() {
		close(x.ending)
		if x.spans != nil {
			close(x.spans)
		}
	})
	timer := time.AfterFunc(flushTimeout, x.stop)
	defer timer.Stop()
	x.work.Wait()
	x.stop()
	if x.file != nil {
		_ = x.file.Close()
	}
	var lost error
	if n := x.lost.Load(); n > 0 {
		lost = errors.Join(fmt.Errorf("signals: %d spans were lost", n), x.failed)
	}
	return errors.Join(lost, x.unsent)
}

func (x *Exporter) sendSpans() {
	for open := true; open; {
		s, ok := <-x.spans
		if !ok {
			break
		}
		batch := []span{s}
		full := time.After(linger)
	gather:
		for len(batch) < batched {
			select {
			case s, open = <-x.spans:
				if !open {
					break gather
				}
				batch = append(batch, s)
			case <-full:
				break gather
			}
		}
		x.export(batch)
	}
}

// sendMetrics sends the metrics at each interval and once at the end.
func (x *Exporter) sendMetrics() {
	tick := time.NewTicker(cmp.Or(x.options.Interval, reported))
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-tick.C:
		case <-x.ending:
			open = false
		}
		metrics := x.meter.snapshot(time.Now())
		if len(metrics) == 0 {
			continue
		}
		body, err := json.Marshal(metricsRequest{[]resourceMetrics{{x.resource, []scopeMetrics{{scope{"pawl"}, metrics}}}}})
		for _, s := range x.metrics {
			err = errors.Join(err, s.send(x.ctx, body))
		}
		if x.unsent = nil; err != nil {
			x.unsent = fmt.Errorf("signals: the newest metrics were not sent: %w", err)
		}
	}
}

func (x *Exporter) export(batch []span) {
	body, err := json.Marshal(traceRequest{[]resourceSpans{{x.resource, []scopeSpans{{scope{"pawl"}, batch}}}}})
	for _, s := range x.traces {
		if err == nil {
			err = s.send(x.ctx, body)
		}
		if err != nil {
			x.lost.Add(int64(len(batch)))
			x.failed, err = err, nil
		}
	}
}

// fileSink writes one line per batch.
type fileSink struct{ *os.File }

func (f fileSink) send(_ context.Context, body []byte) error {
	_, err := f.Write(append(bytes.TrimSpace(body), '\n'))
	return err
}

// ServedRequest describes an answered request of the Model Context Protocol.
type ServedRequest struct {
	// Trace contains the parent of the request's span, and Span identifies the span.
	Trace event.Trace
	Span  string
	// Method is the request's method, and Tool or Resource its subject.
	Method, Tool, Resource string
	// Protocol is the client's protocol version, Session its session id, and Transport
	// is pipe or tcp.
	Protocol, Session, Transport string
	Start, End                   time.Time
	// Failure is the kind of error, or empty on success.
	Failure string
}

// SpanID returns the id of the request's span.
func (r ServedRequest) SpanID() string { return r.Trace.Span(r.Span, "mcp") }

// Served exports the span of a request.
func (x *Exporter) Served(r ServedRequest) {
	s := span{
		TraceID: r.Trace.ID, SpanID: r.SpanID(), ParentSpanID: r.Trace.Parent, Name: strings.TrimSpace(r.Method + " " + r.Tool), Kind: kindServer,
		Start: at(r.Start), End: at(r.End),
	}
	t := &spanBuilder{names: &x.names, dialect: x.options.dialect()}
	if r.Tool != "" {
		t.add(&s, operation, "execute_tool")
	}
	t.add(&s, toolName, r.Tool)
	t.add(&s, mcpMethod, r.Method)
	t.add(&s, mcpResource, r.Resource)
	t.add(&s, mcpProtocol, r.Protocol)
	t.add(&s, mcpSession, r.Session)
	t.add(&s, transport, r.Transport)
	if r.Failure != "" {
		t.fail(&s, r.Failure)
	}
	x.put(s)
}
