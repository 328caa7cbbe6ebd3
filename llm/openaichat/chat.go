// Package openaichat speaks OpenAI's Chat Completions and the many services
// that are compatible with it. What they do differently is in a [Profile].
package openaichat

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strings"
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
	opts    Options
	profile Profile
	client  wire.Client
	names   wire.NameCache
	url     string
	header  http.Header
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model on an endpoint.
func New(o Options) *Model {
	o.BaseURL = cmp.Or(o.BaseURL, DefaultBaseURL)
	o.Provider = cmp.Or(o.Provider, "openai-chat")
	m := &Model{opts: o, url: strings.TrimRight(o.BaseURL, "/") + "/chat/completions"}
	if o.Profile != nil {
		m.profile = *o.Profile
	} else {
		m.profile = ProfileFor(o.BaseURL)
	}
	m.header = wire.Header(map[string]string{"Authorization": wire.Bearer(o.APIKey)}, o.Headers)
	m.client = wire.Client{
		Provider: o.Provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle,
		RequestIDs: []string{"X-Request-Id", "Apim-Request-Id", "Cf-Ray"},
	}
	return m
}

// Generate asks for a whole answer.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.answer(ctx, req, false, func(llm.Delta) {})
}

// Stream asks for an answer in pieces.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.answer(ctx, req, true, emit)
}

// answer makes one exchange.
func (m *Model) answer(ctx context.Context, req *llm.Request, stream bool, emit func(llm.Delta)) (*llm.Response, error) {
	body := req.Encoded
	if body == nil {
		var err error
		if body, err = m.Encode(req); err != nil {
			return nil, err
		}
	}
	accept := "text/event-stream"
	if !stream {
		body, accept = wire.WithEnd(body, m.streamedEnd(), wholeEnd), "application/json"
	}
	x, err := m.client.Post(ctx, m.url, wire.Accepting(m.header, accept), body, classify)
	if err != nil {
		return nil, err
	}
	return m.client.Read(x, newDecoder(m, req, emit))
}

// trimmed drops the white space that some services send to keep a connection
// open.
func trimmed(b []byte) []byte { return bytes.TrimSpace(b) }
