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

// Options configure a [Model]. Every field is optional.
type Options struct {
	// APIKey is sent as x-api-key, AuthToken as Authorization.
	APIKey    string
	AuthToken string
	// BaseURL is the address before /v1/messages, in the form that the official SDKs
	// use; empty means [DefaultBaseURL]. A query is kept.
	BaseURL string
	// HTTP is the client to use; nil means one that honours the proxy variables of the
	// environment. It follows redirects only if it has its own policy, because a
	// redirect would send the key elsewhere.
	HTTP *http.Client
	// Headers are added to every request, for example anthropic-beta.
	Headers map[string]string
	// Idle is how long the service may send nothing before a call counts as stalled; 0
	// means five minutes. Every byte counts, including pings.
	Idle time.Duration
	// Provider names the service in errors, and is the prefix of the targets whose
	// reasoning is sent back; empty means "anthropic".
	Provider string
	// MaxTokens caps the answers of requests that set no cap; the API requires one. 0
	// means [DefaultMaxTokens].
	MaxTokens int
	// NoCache omits the marks that ask the service to cache the prefix.
	NoCache bool
	// Extra are additional members of every request body (thinking, tool_choice,
	// mcp_servers). A member of the request itself takes precedence.
	Extra map[string]json.RawMessage
}

// Model is a Claude model on the Messages API. It is safe for concurrent use.
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

// New returns a model. Each request names the model to use.
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

// Generate requests the whole answer at once.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.call(ctx, req, nil)
}

// Stream requests the answer as a stream.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return m.call(ctx, req, emit)
}

// Address returns where requests go, and their headers.
func (m *Model) Address(*llm.Request) (string, http.Header) { return m.url, m.header }

// Whole returns an encoded request as it is sent for a whole answer.
func (*Model) Whole(e *llm.Encoded) *llm.Encoded { return wire.WithEnd(e, streamedEnd, wholeEnd) }

// call makes one exchange. The answer is streamed if emit is not nil.
func (m *Model) call(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	body, err := wire.Encoded(req, m)
	if err != nil {
		return nil, err
	}
	if emit == nil {
		body = m.Whole(body)
	}
	return m.client.Ask(wire.For(ctx, req), m.url, m.header, body, &decoder{names: m.names.For(req.Tools, maxToolName), emit: emit, cap: int64(m.cap(req))})
}
