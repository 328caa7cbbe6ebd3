package signals

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

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
