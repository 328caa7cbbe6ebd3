// Package openaichat speaks OpenAI's Chat Completions and the many services
// that are compatible with it. What they do differently is in a [Profile].
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

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configure [New].
type Options struct {
	APIKey string
	// BaseURL ends before /chat/completions; empty means [DefaultBaseURL].
	// A query is kept.
	BaseURL string
	// Provider is the prefix of the model's name in a file, as in
	// "groq/…"; empty means "openai-chat". Reasoning is only echoed to the
	// provider and model it came from.
	Provider string
	// Profile says how the service differs; nil means [ProfileFor] the
	// base URL.
	Profile *Profile
	// HTTP is the client to use, nil means a default one. Redirects are not
	// followed unless it has a policy of its own.
	HTTP *http.Client
	// Headers are added to every request.
	Headers map[string]string
	// Idle bounds the silence of a stream; 0 means five minutes.
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
	// prefilled says of each model whether its last answer began behind the opening
	// tag of a thought. It decides how the next one is shown while it comes.
	prefilled sync.Map
	tags      *prefilledTags
	caps      capNames
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model on an endpoint.
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
		body, accept = wire.WithEnd(body, m.streamedEnd(), wholeEnd), "application/json"
	}
	resp, err := m.client.Ask(wire.For(ctx, req), m.url, wire.Accepting(m.header, accept), body, newDecoder(m, req, emit))
	// An error of the transport may be shared, so only one that is learnt from is changed.
	if e, ok := errors.AsType[*llm.Error](err); ok && req.MaxTokens > 0 && m.caps.learn(req.Model, m.profile.MaxTokens, e) {
		e.Adapted = true
	}
	return resp, err
}
