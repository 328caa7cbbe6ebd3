// Package openaichat speaks OpenAI's Chat Completions and the many services
// that are compatible with it. What they do differently is in a [Profile].
package openaichat

import (
	"bytes"
	"context"
	"errors"
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
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model on an endpoint.
func New(o Options) *Model {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.Provider == "" {
		o.Provider = "openai-chat"
	}
	m := &Model{opts: o, url: strings.TrimRight(o.BaseURL, "/") + "/chat/completions"}
	if o.Profile != nil {
		m.profile = *o.Profile
	} else {
		m.profile = ProfileFor(o.BaseURL)
	}
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

// answer reads what comes by its looks, not by what was asked for or by its
// Content-Type: some services answer whole all the same, and some proxies drop
// the type (FIELD F20).
func (m *Model) answer(ctx context.Context, req *llm.Request, stream bool, emit func(llm.Delta)) (*llm.Response, error) {
	x, err := m.post(ctx, req, stream)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	whole, err := x.IsJSON()
	if err != nil {
		return nil, m.client.Broken(x, err)
	}
	if whole {
		data, err := x.ReadAll()
		if err != nil {
			return nil, m.client.Broken(x, err)
		}
		resp, err := m.collect(x, req, data)
		if err == nil {
			wire.EmitWhole(resp, emit)
		}
		return resp, err
	}
	d := newDecoder(m, req, emit)
	err = d.read(wire.NewEventReader(x.Body))
	resp := d.response(x.RequestID, err == nil)
	if err != nil {
		return resp, m.streamError(x, err)
	}
	x.Finish()
	return resp, nil
}

func (m *Model) streamError(x *wire.Exchange, err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Provider, e.RequestID = m.opts.Provider, x.RequestID
		return x.Redact(e)
	}
	return m.client.Broken(x, err)
}

func (m *Model) post(ctx context.Context, req *llm.Request, stream bool) (*wire.Exchange, error) {
	body := req.Encoded
	if body == nil {
		var err error
		if body, err = m.Encode(req); err != nil {
			return nil, err
		}
	}
	if !stream {
		body = wire.WithEnd(body, m.streamedEnd(), wholeEnd)
	}
	h := http.Header{"Content-Type": {"application/json"}}
	if stream {
		h.Set("Accept", "text/event-stream")
	}
	if m.opts.APIKey != "" {
		h.Set("Authorization", "Bearer "+m.opts.APIKey)
	}
	for k, v := range m.opts.Headers {
		h.Set(k, v)
	}
	return m.client.Post(ctx, m.url, h, body, classify)
}

// trimmed drops the white space that some services send to keep a connection
// open.
func trimmed(b []byte) []byte { return bytes.TrimSpace(b) }
