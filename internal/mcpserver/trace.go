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

// traceKey is the context key of the traceparent for a request's work.
type traceKey struct{}

// traceOf returns the traceparent for a request's work, empty for none.
func traceOf(ctx context.Context) string {
	text, _ := ctx.Value(traceKey{}).(string)
	return text
}

// traceparent formats a trace and a span as the header of that name.
func traceparent(trace, span string) string { return "00-" + trace + "-" + span + "-01" }

// trace records a span of a request, below the span that the client names in _meta. The
// request's work is recorded below the new span, or below the client's if none is
// recorded.
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

// metaOf returns the _meta of a request's parameters, which may be a nil pointer.
func metaOf(p mcp.Params) (meta map[string]any) {
	defer func() { _ = recover() }()
	return p.GetMeta()
}

// failureOf returns why a request failed, empty for success.
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
