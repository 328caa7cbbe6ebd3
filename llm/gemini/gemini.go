// Package gemini implements Google's Gemini API (generateContent).
package gemini

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
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
	// BaseURL has the form of GOOGLE_GEMINI_BASE_URL in the official SDKs: the API's
	// version and path are added to it. A query is kept.
	BaseURL string
	// HTTP is the transport; nil means one that follows no redirect.
	HTTP *http.Client
	// Headers are added to every request.
	Headers map[string]string
	// Idle bounds the time without data in a stream; 0 means five minutes.
	Idle time.Duration
}

// Model is a Gemini endpoint. It is safe for concurrent use.
type Model struct {
	client wire.Client
	base   string
	header http.Header
	names  wire.NameCache
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model for an endpoint.
func New(o Options) *Model {
	return &Model{
		base: cmp.Or(o.BaseURL, DefaultBaseURL),
		// The key is sent in a header, because addresses are logged.
		header: wire.Header(map[string]string{"X-Goog-Api-Key": o.APIKey}, o.Headers),
		client: wire.Client{
			Provider: provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle,
			RequestIDs: []string{"X-Goog-Request-Id", "X-Request-Id"}, Classify: classify,
		},
	}
}

// Generate requests the whole answer at once.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.call(ctx, req, nil)
}

// Stream requests the answer as a stream.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.call(ctx, req, emit)
}

// call makes one exchange. The answer is streamed if emit is not nil; the bytes of the
// request are the same.
func (m *Model) call(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	body, err := wire.Encoded(req, m)
	if err != nil {
		return nil, err
	}
	verb := streaming
	if emit == nil {
		verb = ":generateContent"
	}
	return m.client.Ask(wire.For(ctx, req), m.endpoint(req, verb), m.header, body, newDecoder(m.names.For(req.Tools, maxToolName), emit))
}

const streaming = ":streamGenerateContent?alt=sse"

func (m *Model) endpoint(req *llm.Request, verb string) string {
	return wire.Endpoint(m.base, "/v1beta/models/"+url.PathEscape(req.Model)+verb)
}

// Address returns where requests go, and their headers.
func (m *Model) Address(req *llm.Request) (string, http.Header) {
	return m.endpoint(req, streaming), m.header
}
