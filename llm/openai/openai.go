// Package openai speaks OpenAI's Responses API, to OpenAI itself and to the
// services that copy it.
//
// Every request carries the whole conversation (store is false), so that the
// journal is the only history there is. What the service must get back
// untouched (sealed reasoning, items of tools that it runs itself, the ids that
// pair a call with the reasoning before it) is kept in the Raw of the parts.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// DefaultBaseURL is where OpenAI itself serves the API.
const DefaultBaseURL = "https://api.openai.com/v1"

// maxToolName is the longest tool name that the API takes.
const maxToolName = 64

// Options say which service to talk to, and as whom. The zero value talks to
// OpenAI without a key.
type Options struct {
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// BaseURL is the service's address with its version, as the official SDK
	// takes it; "" means [DefaultBaseURL]. A query is kept.
	BaseURL string
	// Organization and Project choose who pays, where a key belongs to several.
	Organization string
	Project      string
	// Provider is the first half of target names ("openai" when empty). It
	// names the service in errors, and reasoning is only echoed to the
	// provider and model that it came from.
	Provider string
	// HTTP is the client to use; nil means one that honours the proxy variables
	// of the environment. Redirects are not followed unless it has a policy of
	// its own.
	HTTP *http.Client
	// Headers are sent in addition and win over the adapter's own.
	Headers map[string]string
	// Idle bounds how long an answer may be silent, counted in bytes of any
	// kind; 0 means five minutes.
	Idle time.Duration
	// Extra are further members of every request body (reasoning, tool_choice,
	// service_tier). What the request itself sets wins over them.
	Extra map[string]json.RawMessage
}

// Model is a service that speaks the Responses API. It is safe for concurrent
// use.
type Model struct {
	client   wire.Client
	url      string
	header   http.Header
	provider string
	extra    map[string]json.RawMessage
	// official says that it is OpenAI itself that answers.
	official bool
	// variant identifies what the options add to every request.
	variant string
	names   wire.NameCache
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model of the service that the options describe. A bad address
// shows with the first call.
func New(o Options) *Model {
	m := &Model{provider: cmp.Or(o.Provider, "openai"), url: wire.Endpoint(cmp.Or(o.BaseURL, DefaultBaseURL), "/responses"), header: headers(&o), extra: o.Extra}
	m.official = official(m.url)
	m.variant = string(m.appendExtra(nil, &llm.Request{}))
	m.client = wire.Client{
		Provider: m.provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle,
		RequestIDs: []string{"X-Request-Id", "Apim-Request-Id"}, Classify: classify,
	}
	return m
}

func headers(o *Options) http.Header {
	return wire.Header(map[string]string{
		"OpenAI-Organization": o.Organization, "OpenAI-Project": o.Project, "Authorization": wire.Bearer(o.APIKey),
	}, o.Headers)
}

// Generate asks for the whole answer at once.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.call(ctx, req, nil)
}

// Stream asks for the answer as it is made.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.call(ctx, req, emit)
}

// call makes one exchange. The answer is streamed if emit is not nil.
func (m *Model) call(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	body, err := wire.Encoded(req, m)
	if err != nil {
		return nil, err
	}
	accept := "text/event-stream"
	if emit == nil {
		body, accept = wire.WithEnd(body, streamedEnd, wholeEnd), "application/json"
	}
	return m.client.Ask(wire.For(ctx, req), m.url, wire.Accepting(m.header, accept), body, &decoder{offered: m.offer(req), emit: emit, limit: int64(req.MaxTokens)})
}
