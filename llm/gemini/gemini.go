// Package gemini speaks Google's Gemini API (generateContent).
package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// DefaultBaseURL is the public service.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// provider is the prefix of model names in files.
const provider = "google"

// Options configure [New].
type Options struct {
	APIKey string
	// BaseURL is taken as the official SDKs take GOOGLE_GEMINI_BASE_URL: the
	// API's version and path are added to it.
	BaseURL string
	// HTTP is the transport; nil means one that follows no redirect.
	HTTP *http.Client
	// Headers are added to every request.
	Headers map[string]string
	// Idle bounds the silence of a stream; 0 means five minutes.
	Idle time.Duration
}

// Model is a Gemini endpoint. It is safe for concurrent use.
type Model struct {
	opts   Options
	client wire.Client
	base   string
	names  wire.NameCache
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
	return &Model{
		opts: o, base: strings.TrimRight(o.BaseURL, "/") + "/v1beta/models/",
		client: wire.Client{Provider: provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle, RequestIDs: []string{"X-Goog-Request-Id", "X-Request-Id"}},
	}
}

// Generate asks for a whole answer.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.answer(ctx, req, ":generateContent", func(llm.Delta) {})
}

// Stream asks for an answer in pieces.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.answer(ctx, req, ":streamGenerateContent?alt=sse", emit)
}

// answer reads what comes by its looks: an object or a stream of events.
func (m *Model) answer(ctx context.Context, req *llm.Request, verb string, emit func(llm.Delta)) (*llm.Response, error) {
	x, err := m.post(ctx, req, verb)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	names := m.names.For(req.Tools, maxToolName)
	whole, err := x.IsJSON()
	if err != nil {
		return nil, m.client.Broken(x, err)
	}
	if whole {
		resp, err := m.collect(x, newDecoder(names, func(llm.Delta) {}))
		if err == nil {
			wire.EmitWhole(resp, emit)
		}
		return resp, err
	}
	d := newDecoder(names, emit)
	err = d.read(wire.NewEventReader(x.Body))
	resp := d.response(x.RequestID, err == nil)
	if err != nil {
		return resp, m.streamError(x, err)
	}
	return resp, nil
}

func (m *Model) collect(x *wire.Exchange, d *decoder) (*llm.Response, error) {
	data, err := x.ReadAll()
	if err == nil {
		err = d.chunk(data)
	}
	if err == nil && !d.ended() {
		err = wire.ErrSyntax
	}
	if err != nil {
		return nil, m.streamError(x, err)
	}
	return d.response(x.RequestID, true), nil
}

func (m *Model) streamError(x *wire.Exchange, err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		e.Provider, e.RequestID = provider, x.RequestID
		return x.Redact(e)
	}
	return m.client.Broken(x, err)
}

func (m *Model) post(ctx context.Context, req *llm.Request, verb string) (*wire.Exchange, error) {
	body := req.Encoded
	if body == nil {
		var err error
		if body, err = m.encode(req); err != nil {
			return nil, err
		}
	}
	// The key goes into a header: an address ends up in logs.
	h := http.Header{"Content-Type": {"application/json"}, "X-Goog-Api-Key": {m.opts.APIKey}}
	for k, v := range m.opts.Headers {
		h.Set(k, v)
	}
	return m.client.Post(ctx, m.base+url.PathEscape(req.Model)+verb, h, body, classify)
}

// Encode gives the bytes that both Generate and Stream send.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) { return m.encode(req) }
