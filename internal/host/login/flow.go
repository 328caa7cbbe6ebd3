package login

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Begin logs a user in. It calls open with the page of the authorization server on
// which the user consents; the browser is then redirected to a port of this machine.
// Begin checks the issuer, the state and the code verifier (S256).
func (l *Login) Begin(ctx context.Context, open func(page string) error) error {
	challenge, err := l.challenge(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	defer listener.Close()
	k := kept{URL: l.URL, Further: l.Further}
	if last, err := l.read(); err == nil {
		k.Further = union(last.Further, l.Further)
	}
	var met metadata
	c := l.config("http://"+listener.Addr().String()+"/callback", &k,
		func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return l.agreed(ctx, listener, args.URL, &k, open)
		})
	c.Client = met.client(l.client())
	handler, err := auth.NewAuthorizationCodeHandler(c)
	if err != nil {
		return errors.Join(fmt.Errorf("login: %w", err), challenge.Body.Close())
	}
	if err := handler.Authorize(ctx, challenge.Request, challenge); err != nil {
		return fmt.Errorf("login at %s: %w", l.URL, err)
	}
	k.Revocation = met.revocation(k.TokenEndpoint)
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return l.write(&k)
}

// metadata collects what authorization servers publish of themselves while a login
// discovers them, because the SDK keeps it to itself.
type metadata struct {
	http.RoundTripper
	all []endpoints
}

type endpoints struct {
	Token      string `json:"token_endpoint"`
	Revocation string `json:"revocation_endpoint"`
}

func (m *metadata) client(c *http.Client) *http.Client {
	with := *c
	m.RoundTripper, with.Transport = cmp.Or(c.Transport, http.DefaultTransport), m
	return &with
}

// RoundTrip implements [http.RoundTripper]. The requests of a login come one by one.
func (m *metadata) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var e endpoints
	_ = json.Unmarshal(text, &e) // the SDK reports an error in it
	m.all = append(m.all, e)
	return resp, err
}

// revocation returns where the server with a token endpoint revokes tokens, empty for
// nowhere. Tokens are sent encrypted, or to the machine that issued them.
func (m *metadata) revocation(token string) string {
	for _, server := range m.all {
		if server.Token != token || server.Revocation == "" {
			continue
		}
		to, err := url.Parse(server.Revocation)
		from, wrong := url.Parse(token)
		if err == nil && wrong == nil && (to.Scheme == "https" || to.Scheme == from.Scheme && to.Host == from.Host) {
			return server.Revocation
		}
	}
	return ""
}

// config returns the configuration of a client on this machine.
func (l *Login) config(redirect string, k *kept, fetch auth.AuthorizationCodeFetcher) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, AuthorizationCodeFetcher: fetch, RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: l.client(),
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: "Pawl", TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		NewTokenSource: func(_ context.Context, cfg *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			k.TokenEndpoint, k.Style = cfg.Endpoint.TokenURL, cfg.Endpoint.AuthStyle
			k.ClientID, k.ClientSecret = cfg.ClientID, cfg.ClientSecret
			k.AccessToken, k.RefreshToken, k.Expires = t.AccessToken, t.RefreshToken, t.Expiry
			return oauth2.StaticTokenSource(t), nil
		},
	}
	if len(l.Scopes)+len(k.Further) > 0 {
		c.ScopeFilter = func(named []string) []string {
			if len(l.Scopes) > 0 {
				named = l.Scopes
			}
			return union(named, k.Further)
		}
	}
	switch {
	case strings.HasPrefix(l.ClientID, "https://"):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.ClientID}
	case l.ClientID != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.ClientID}
		if l.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.ClientSecret}
		}
	}
	return c
}

// union returns the scopes of both lists, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// probes are requests that a server refuses without a token. Some servers let everybody
// begin a session, and refuse what comes after it.
var probes = [...]string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"pawl","version":"1"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
}

// challenge returns the server's refusal of a request without a token.
func (l *Login) challenge(ctx context.Context) (*http.Response, error) {
	session, status := "", ""
	for _, probe := range probes {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL, strings.NewReader(probe))
		if err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := l.client().Do(req)
		if err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		if resp.StatusCode == http.StatusUnauthorized {
			return resp, nil
		}
		session, status = resp.Header.Get("Mcp-Session-Id"), resp.Status
		_ = resp.Body.Close()
	}
	return nil, fmt.Errorf("login: %s asks for no login: it answered %s", l.URL, status)
}

// agreed waits until the authorization server redirects the browser back.
func (l *Login) agreed(ctx context.Context, listener net.Listener, page string, k *kept, open func(string) error) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(page)
	if err != nil {
		return nil, fmt.Errorf("the page to agree on: %w", err)
	}
	k.Resource = u.Query().Get("resource")
	answers := make(chan answer, 2)
	put := func(a answer) {
		select {
		case answers <- a:
		default: // the page was loaded again
		}
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := answerIn(r.URL, u.Query().Get("state"))
		if !ok {
			http.Error(w, errNoAnswer.Error(), http.StatusBadRequest)
			return
		}
		text := "Logged in. You can close this page."
		if a.err != nil {
			text = "The login failed. The terminal says why."
		}
		fmt.Fprintln(w, text)
		put(a)
	})}
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()
	go func() { _ = server.Serve(listener) }()
	if err := open(page); err != nil {
		return nil, err
	}
	if l.Paste != nil {
		go func() { put(l.pasted(ctx, u.Query().Get("state"))) }()
	}
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer is the response of the authorization server.
type answer struct {
	result *auth.AuthorizationResult
	err    error
}

var errNoAnswer = errors.New("this is no answer to the login that is under way")

// answerIn parses the address that the browser was redirected to; ok reports whether
// its state belongs to this login.
func answerIn(u *url.URL, state string) (a answer, ok bool) {
	q := u.Query()
	if u.Path != "/callback" || q.Get("state") != state {
		return answer{}, false
	}
	a.result = &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}
	if q.Get("code") == "" {
		a.err = fmt.Errorf("the authorization server did not agree: %q %q", q.Get("error"), q.Get("error_description"))
	}
	return a, true
}

// pasted returns the answer in the address that a person pastes.
func (l *Login) pasted(ctx context.Context, state string) answer {
	text, err := l.Paste(ctx)
	if err != nil {
		return answer{err: err}
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return answer{err: errNoAnswer}
	}
	if a, ok := answerIn(u, state); ok {
		return a
	}
	return answer{err: errNoAnswer}
}
