package signals

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// ServedRequest is a request of the Model Context Protocol that was answered.
type ServedRequest struct {
	// Trace has the parent of the request's span, which Span names among all.
	Trace event.Trace
	Span  string
	// Method is that of the request, Tool or Resource what it is about.
	Method, Tool, Resource string
	// Protocol is the version that the client speaks, Session its session, and Transport
	// is pipe or tcp.
	Protocol, Session, Transport string
	Start, End                   time.Time
	// Failure is how the request failed, empty for one that did not.
	Failure string
}

// SpanID is the id of the request's span.
func (r ServedRequest) SpanID() string { return r.Trace.Span(r.Span, "mcp") }

// Served sends the span of a request.
func (x *Exporter) Served(r ServedRequest) {
	s := span{
		TraceID: r.Trace.ID, SpanID: r.SpanID(), ParentSpanID: r.Trace.Parent, Name: strings.TrimSpace(r.Method + " " + r.Tool), Kind: kindServer,
		Start: at(r.Start), End: at(r.End),
	}
	t := &teller{names: &x.names, dialect: x.options.dialect()}
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
