package mcpserver

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/signals"
)

// traceKey is the key of the traceparent of what a request does, in its context.
type traceKey struct{}

// traceOf is the traceparent of what a request does, empty where there is none.
func traceOf(ctx context.Context) string {
	text, _ := ctx.Value(traceKey{}).(string)
	return text
}

// traceparent is a place in a trace as the header of that name has it.
func traceparent(trace, span string) string { return "00-" + trace + "-" + span + "-01" }

// trace records a span of a request, below the one that the client names in _meta. What
// the request does stands below the span, or below the client's where none is recorded.
func (s *Server) trace(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var given string
		if params := req.GetParams(); params != nil {
			given, _ = metaOf(params)[traceMeta].(string)
		}
		parent, is := event.ParseTraceparent(given)
		if s.Exporter == nil {
			if is {
				ctx = context.WithValue(ctx, traceKey{}, given)
			}
			return next(ctx, method, req)
		}
		r := signals.ServedRequest{Method: method, Transport: "pipe", Start: time.Now()}
		r.Trace, r.Span = parent, engine.NewID()
		if !is {
			r.Trace = event.NewTrace(r.Span)
		}
		if session := req.GetSession(); session != nil && session.ID() != "" {
			r.Session = session.ID()
		}
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			r.Transport = "tcp"
		}
		switch of := req.(type) {
		case *mcp.CallToolRequest:
			r.Tool, r.Protocol = of.Params.Name, of.ProtocolVersion()
		case *mcp.ReadResourceRequest:
			r.Resource, r.Protocol = of.Params.URI, of.ProtocolVersion()
		}
		ctx = context.WithValue(ctx, traceKey{}, traceparent(r.Trace.ID, r.SpanID()))
		result, err := next(ctx, method, req)
		r.End, r.Failure = time.Now(), failureOf(result, err)
		s.Exporter.Served(r)
		return result, err
	}
}

// metaOf is the _meta of a request's parameters, which may be nil behind their type.
func metaOf(p mcp.Params) (meta map[string]any) {
	defer func() { _ = recover() }()
	return p.GetMeta()
}

// failureOf is how a request failed, empty for one that did not.
func failureOf(result mcp.Result, err error) string {
	if wire, is := errors.AsType[*jsonrpc.Error](err); is {
		return strconv.FormatInt(wire.Code, 10)
	}
	if err != nil {
		return "_OTHER"
	}
	if r, is := result.(*mcp.CallToolResult); is && r != nil && r.IsError {
		return "tool_error"
	}
	return ""
}
