// Package openaichat implements OpenAI's Chat Completions, also for the many compatible
// services. A [Profile] describes their differences.
package openaichat

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// DefaultBaseURL is the address of OpenAI's API.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configure [New].
type Options struct {
	APIKey string
	// BaseURL is the address before /chat/completions; empty means [DefaultBaseURL]. A
	// query is kept.
	BaseURL string
	// Provider is the prefix of the model's name in a file, as in "groq/…"; empty means
	// "openai-chat". Reasoning is sent back only to the provider and model that it came
	// from.
	Provider string
	// Profile describes the service's differences; nil means [ProfileFor] the base URL.
	Profile *Profile
	// HTTP is the client to use; nil means a default one. It follows redirects only if
	// it has its own policy.
	HTTP *http.Client
	// Headers are added to every request.
	Headers map[string]string
	// Idle bounds the time without data in a stream; 0 means five minutes.
	Idle time.Duration
}

// Model is a chat-completions endpoint. It is safe for concurrent use.
type Model struct {
	client   wire.Client
	url      string
	header   http.Header
	provider string
	profile  Profile
	names    wire.NameCache
	// prefilled records for each model whether its last answer began after the opening
	// tag of a thought, which decides how the next answer is shown while it streams.
	prefilled sync.Map
	tags      *prefilledTags
	caps      capNames
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model for an endpoint.
func New(o Options) *Model {
	base := cmp.Or(o.BaseURL, DefaultBaseURL)
	m := &Model{
		url:      wire.Endpoint(base, "/chat/completions"),
		header:   wire.Header(map[string]string{"Authorization": wire.Bearer(o.APIKey)}, o.Headers),
		provider: cmp.Or(o.Provider, "openai-chat"),
		tags:     newPrefilledTags(),
	}
	if o.Profile != nil {
		m.profile = *o.Profile
	} else {
		m.profile = ProfileFor(base)
	}
	m.client = wire.Client{
		Provider: m.provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle,
		RequestIDs: []string{"X-Request-Id", "Apim-Request-Id", "Cf-Ray"}, Classify: classify,
	}
	return m
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
func (m *Model) Whole(e *llm.Encoded) *llm.Encoded { return wire.WithEnd(e, m.streamedEnd(), wholeEnd) }

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
	resp, err := m.client.Ask(wire.For(ctx, req), m.url, wire.Accepting(m.header, accept), body, newDecoder(m, req, emit))
	// An error of the transport may be shared, so it is copied before it is changed.
	if e, ok := errors.AsType[*llm.Error](err); ok && req.MaxTokens > 0 && m.caps.learn(req.Model, m.profile.MaxTokens, e) {
		e.Adapted = true
	}
	return resp, err
}
