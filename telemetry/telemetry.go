// Package telemetry reports an engine's activity as OpenTelemetry spans, following the
// GenAI conventions of semconv 1.41: a "chat" span for each attempt at a model call and
// an "execute_tool" span for each attempt at a tool call. Spans contain no prompts,
// answers or arguments.
package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// The attribute names of the conventions, which are not stable yet.
const (
	operationName  = attribute.Key("gen_ai.operation.name")
	providerName   = attribute.Key("gen_ai.provider.name")
	requestModel   = attribute.Key("gen_ai.request.model")
	responseModel  = attribute.Key("gen_ai.response.model")
	conversationID = attribute.Key("gen_ai.conversation.id")
	inputTokens    = attribute.Key("gen_ai.usage.input_tokens")
	outputTokens   = attribute.Key("gen_ai.usage.output_tokens")
	toolName       = attribute.Key("gen_ai.tool.name")
	toolCallID     = attribute.Key("gen_ai.tool.call.id")
	errorType      = attribute.Key("error.type")
)

// Spans returns an observer that creates spans with the tracer. A span ends before its
// model or tool call is journalled.
func Spans(tracer trace.Tracer) perform.Observer {
	return perform.Observer{
		Model: func(ctx context.Context, c perform.ModelCall, next func(context.Context) (*llm.Response, error)) (*llm.Response, error) {
			provider, model, _ := strings.Cut(c.Target, "/")
			ctx, span := tracer.Start(ctx, "chat "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
				operationName.String("chat"), providerName.String(provider), requestModel.String(model), conversationID.String(c.Run),
			))
			defer span.End()
			resp, err := next(ctx)
			if resp != nil {
				span.SetAttributes(responseModel.String(resp.Model), inputTokens.Int64(resp.Usage.Input), outputTokens.Int64(resp.Usage.Output))
			}
			if err != nil {
				fail(span, string(llm.AsError(err).Class))
			}
			return resp, err
		},
		Tool: func(ctx context.Context, c perform.ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error) {
			ctx, span := tracer.Start(ctx, "execute_tool "+c.Tool, trace.WithAttributes(
				operationName.String("execute_tool"), toolName.String(c.Tool), toolCallID.String(c.CallID), conversationID.String(c.Run),
			))
			defer span.End()
			r, err := next(ctx)
			switch {
			case err != nil:
				fail(span, "tool_error")
			case r.IsError:
				fail(span, string(r.ErrorType))
			}
			return r, err
		},
	}
}

// fail marks a span as failed. It records only the kind of failure.
func fail(span trace.Span, kind string) {
	span.SetAttributes(errorType.String(kind))
	span.SetStatus(codes.Error, kind)
}
