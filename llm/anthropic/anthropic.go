package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Defaults of [Options].
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	DefaultMaxTokens = 8192
	defaultProvider  = "anthropic"
	apiVersion       = "2023-06-01"
)

// Options configure a [Model]. Every field may be left out.
type Options struct {
	// APIKey goes into x-api-key, AuthToken into Authorization.
	APIKey    string
	AuthToken string
	// BaseURL is what comes before /v1/messages, as the official SDKs take it;
	// empty means [DefaultBaseURL]. A query is kept.
	BaseURL string
	// HTTP is the client to use; nil means one that honours the proxy variables
	// of the environment. Redirects are not followed unless it has a policy of
	// its own, because they would carry the key elsewhere.
	HTTP *http.Client
	// Headers are added to every request, as anthropic-beta.
	Headers map[string]string
	// Idle is how long the service may be silent before a call counts as
	// stalled; 0 means five minutes. Every byte counts, pings too.
	Idle time.Duration
	// Provider names the service in errors and is the first half of the target
	// names whose reasoning is echoed; empty means "anthropic".
	Provider string
	// MaxTokens caps answers of requests that do not say; the API demands a
	// figure. 0 means [DefaultMaxTokens].
	MaxTokens int
	// NoCache leaves out the marks that ask the service to cache the prefix.
	NoCache bool
	// Extra are further members of every request body (thinking, tool_choice,
	// mcp_servers). A member that the request itself sets wins over them.
	Extra map[string]json.RawMessage
}

// Model is a Claude model behind the Messages API. It is safe for concurrent use.
type Model struct {
	client    wire.Client
	url       string
	header    http.Header
	provider  string
	maxTokens int
	cache     bool
	extra     map[string]json.RawMessage
	// variant identifies what the options add to every request.
	variant string
	names   wire.NameCache
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// New returns a model. The model's name comes with each request.
func New(o Options) *Model {
	m := &Model{
		url:      wire.Endpoint(cmp.Or(o.BaseURL, DefaultBaseURL), "/v1/messages"),
		header:   headers(o),
		provider: cmp.Or(o.Provider, defaultProvider), maxTokens: cmp.Or(o.MaxTokens, DefaultMaxTokens),
		cache: !o.NoCache, extra: o.Extra,
	}
	m.variant = fmt.Sprintf("%d %t %s", m.maxTokens, m.cache, m.appendExtra(nil, &llm.Request{}))
	m.client = wire.Client{
		Provider: m.provider, HTTP: wire.WithoutRedirects(o.HTTP), Idle: o.Idle,
		RequestIDs: []string{"Request-Id", "X-Request-Id"}, Classify: classify,
	}
	return m
}

func headers(o Options) http.Header {
	return wire.Header(map[string]string{
		"Accept": "text/event-stream, application/json", "Anthropic-Version": apiVersion,
		"X-Api-Key": o.APIKey, "Authorization": wire.Bearer(o.AuthToken),
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
	if emit == nil {
		body = wire.WithEnd(body, streamedEnd, wholeEnd)
	}
	return m.client.Ask(wire.For(ctx, req), m.url, m.header, body, &decoder{names: m.names.For(req.Tools, maxToolName), emit: emit, cap: int64(m.cap(req))})
}
