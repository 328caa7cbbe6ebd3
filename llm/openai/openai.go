// Package openai implements OpenAI's Responses API, for OpenAI and for services that
// copy it.
//
// Every request contains the whole conversation (store is false), so the journal is the
// only history. Data that the service needs back unchanged (encrypted reasoning, items
// of tools that it runs itself, the ids that pair a call with the reasoning before it)
// is kept in the Raw of the parts.
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

// DefaultBaseURL is the address of OpenAI's API.
const DefaultBaseURL = "https://api.openai.com/v1"

// maxToolName is the API's limit on the length of tool names.
const maxToolName = 64

// Options select a service and the credentials for it. The zero value calls OpenAI
// without a key.
type Options struct {
	// APIKey is sent as a bearer token; empty sends none.
	APIKey string
	// BaseURL is the service's address with its version, in the form that the official
	// SDK uses; "" means [DefaultBaseURL]. A query is kept.
	BaseURL string
	// Organization and Project select the account that pays, if a key belongs to
	// several.
	Organization string
	Project      string
	// Provider is the prefix of target names ("openai" if empty). It names the service
	// in errors, and reasoning is sent back only to the provider and model that it came
	// from.
	Provider string
	// HTTP is the client to use; nil means one that honours the proxy variables of the
	// environment. It follows redirects only if it has its own policy.
	HTTP *http.Client
	// Headers are added to every request and override the adapter's own.
	Headers map[string]string
	// Idle bounds the time without any byte of an answer; 0 means five minutes.
	Idle time.Duration
	// Extra are additional members of every request body (reasoning, tool_choice,
	// service_tier). A member of the request itself takes precedence.
	Extra map[string]json.RawMessage
}

// Model is a service with the Responses API. It is safe for concurrent use.
type Model struct {
	client   wire.Client
	url      string
	header   http.Header
	provider string
	extra    map[string]json.RawMessage
	// official reports that the service is OpenAI's own.
	official bool
	// variant identifies what the options add to every request.
	variant string
	names   wire.NameCache
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model of the service that the options describe. The first call reports
// an invalid address.
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

// Generate requests the whole answer at once.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.call(ctx, req, nil)
}

// Stream requests the answer as a stream.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.call(ctx, req, emit)
}

// Address returns where requests go, and their headers.
func (m *Model) Address(*llm.Request) (string, http.Header) {
	return m.url, wire.Accepting(m.header, "text/event-stream")
}

// Whole returns an encoded request as it is sent for a whole answer.
func (*Model) Whole(e *llm.Encoded) *llm.Encoded { return wire.WithEnd(e, streamedEnd, wholeEnd) }

// call makes one exchange. The answer is streamed if emit is not nil.
func (m *Model) call(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	body, err := wire.Encoded(req, m)
	if err != nil {
		return nil, err
	}
	accept := "text/event-stream"
	if emit == nil {
		body, accept = m.Whole(body), "application/json"
	}
	return m.client.Ask(wire.For(ctx, req), m.url, wire.Accepting(m.header, accept), body, &decoder{offered: m.offer(req), emit: emit, limit: int64(req.MaxTokens)})
}
