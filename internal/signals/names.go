package signals

import (
	"strings"

	"github.com/pawlrun/pawl/models"
)

// dialect is a version of OpenTelemetry's GenAI conventions.
type dialect int

const (
	// stable is semconv 1.41, the version that back ends support.
	stable dialect = iota
	// latest is the version in the separate repository of the GenAI conventions.
	latest
	dialects
)

// name is the name of an attribute or metric in each dialect, or empty if the dialect
// has none.
type name [dialects]string

func same(n string) name { return name{n, n} }

// target splits a model's target into the provider's name in the conventions and the
// model's own name.
func target(of string) (company, model string) {
	company, model, _ = strings.Cut(of, "/")
	return models.TelemetryName(company), model
}

// term identifies an attribute of spans and metrics.
type term int

const (
	operation term = iota
	agentName
	workflowName
	agentID
	conversation
	provider
	requestModel
	responseModel
	responseID
	finishReasons
	inputTokens
	outputTokens
	cacheRead
	cacheWrite
	reasoning
	compacted
	toolName
	toolCall
	toolArguments
	toolResult
	outputMessages
	tokenType
	errorType
	runID
	runReason
	costUSD
	attempts
	mcpMethod
	mcpResource
	mcpProtocol
	mcpSession
	transport
	terms
)

// names returns the attribute names of all terms in both dialects.
func names() [terms]name {
	return [terms]name{
		operation:      same("gen_ai.operation.name"),
		agentName:      same("gen_ai.agent.name"),
		workflowName:   same("gen_ai.workflow.name"),
		agentID:        {"gen_ai.agent.id", ""},
		conversation:   same("gen_ai.conversation.id"),
		provider:       same("gen_ai.provider.name"),
		requestModel:   same("gen_ai.request.model"),
		responseModel:  same("gen_ai.response.model"),
		responseID:     same("gen_ai.response.id"),
		finishReasons:  same("gen_ai.response.finish_reasons"),
		inputTokens:    same("gen_ai.usage.input_tokens"),
		outputTokens:   same("gen_ai.usage.output_tokens"),
		cacheRead:      same("gen_ai.usage.cache_read.input_tokens"),
		cacheWrite:     {"gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens"},
		reasoning:      same("gen_ai.usage.reasoning.output_tokens"),
		compacted:      {"", "gen_ai.conversation.compacted"},
		toolName:       same("gen_ai.tool.name"),
		toolCall:       same("gen_ai.tool.call.id"),
		toolArguments:  same("gen_ai.tool.call.arguments"),
		toolResult:     same("gen_ai.tool.call.result"),
		outputMessages: same("gen_ai.output.messages"),
		tokenType:      {"gen_ai.token.type", ""},
		errorType:      same("error.type"),
		runID:          same("pawl.run.id"),
		runReason:      same("pawl.run.reason"),
		costUSD:        same("pawl.cost.usd"),
		attempts:       same("pawl.attempts"),
		mcpMethod:      same("mcp.method.name"),
		mcpResource:    same("mcp.resource.uri"),
		mcpProtocol:    same("mcp.protocol.version"),
		mcpSession:     same("mcp.session.id"),
		transport:      same("network.transport"),
	}
}
