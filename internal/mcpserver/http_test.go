package mcpserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/memory"
)

// listen serves a site over HTTP, and returns the address.
func (s site) listen() string {
	s.runs.Mount(mcpserver.Path, s.Handler())
	web := httptest.NewServer(s.runs.Handler())
	s.t.Cleanup(func() {
		if err := s.runs.Close(); err != nil {
			s.t.Error(err)
		}
		web.Close()
	})
	return web.URL
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects the SDK's client over HTTP.
func (s site) dial(url, token, version string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: url + mcpserver.Path, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		s.t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func TestOverHTTPRunsAndQuestionsAreThoseOfStdio(t *testing.T) {
	each(t, func(t *testing.T, s site, version string) {
		url := s.listen()
		for range 2 {
			u := &user{answers: []string{"approve", "reject"}}
			session, err := s.dial(url, "", version, u.options())
			if err != nil {
				t.Fatal(err)
			}
			run, r := s.callTool(session, "writes", "", map[string]any{"task": "go"})
			if r.IsError || text(r) != "the end" || len(u.asked) != 2 || run == "" {
				t.Errorf("run %s gives %t %s after %q", run, r.IsError, text(r), u.asked)
			}
		}
		if !s.exists("one.txt") || s.exists("two.txt") {
			t.Error("the files are not those that were approved")
		}
	})
}

func TestOverHTTPTheRoleOfTheTokenCounts(t *testing.T) {
	file, given := filepath.Join(t.TempDir(), "tokens.yaml"), map[access.Role]string{}
	for _, role := range access.Roles() {
		token, err := tokens.Create(file, tokens.Entry{Name: "the-" + string(role), Role: role})
		if err != nil {
			t.Fatal(err)
		}
		given[role] = token
	}
	s := serve(t, memory.New(nil), agents, func(o *server.Options, _ *mcpserver.Options) { o.Tokens, o.NoAuth = file, false })
	url := s.listen()
	args := map[string]any{"task": "go", "language": "x"}
	for _, version := range protocols {
		for _, token := range []string{"", "none"} {
			if _, err := s.dial(url, token, version, nil); err == nil {
				t.Errorf("%s: a client with the token %q connects", version, token)
			}
		}
		for _, role := range access.Roles() {
			session, err := s.dial(url, given[role], version, nil)
			if err != nil {
				t.Fatal(err)
			}
			run, r := s.callTool(session, "reads", "", args)
			if role == access.Viewer {
				if !r.IsError || !strings.Contains(text(r), "the-viewer has the role viewer, and this needs editor") {
					t.Errorf("%s: a viewer starts a run: %s", version, text(r))
				}
				continue
			}
			if r.IsError || s.standing(run).State != "ended" {
				t.Errorf("%s: %s gets %s", version, role, text(r))
			}
			started, err := s.runs.Started(t.Context(), run)
			if err != nil || started.Principal.Name != "the-"+string(role) {
				t.Errorf("%s: the run of %s is started by %+v, %v", version, role, started.Principal, err)
			}
		}
	}
	// A session belongs to its principal.
	first := post(t, url, "Bearer "+given[access.Admin], "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	id := first.Header.Get("Mcp-Session-Id")
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if again := post(t, url, "Bearer "+given[access.Editor], id, list); id == "" || again.StatusCode != http.StatusForbidden {
		t.Errorf("another principal speaks in the session %q: %s", id, again.Status)
	}
	if again := post(t, url, "Bearer "+given[access.Admin], id, list); again.StatusCode != http.StatusOK {
		t.Errorf("the principal of the session gets %s", again.Status)
	}
}

// post sends one request.
func post(t *testing.T, url, authorization, session, body string, change ...func(*http.Request)) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+mcpserver.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	for _, c := range change {
		c(r)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestOverHTTPOtherHostsAndOriginsAreRefused(t *testing.T) {
	s := newest(t, agents)
	url := s.listen()
	ping := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"as it is":       {func(*http.Request) {}, http.StatusOK},
		"its own origin": {func(r *http.Request) { r.Header.Set("Origin", url) }, http.StatusOK},
		"another host":   {func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
		"another origin": {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"another site":   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
	} {
		for range 2 {
			if answer := post(t, url, "", "", ping, tt.change); answer.StatusCode != tt.status {
				t.Errorf("%s: the status is %s", name, answer.Status)
			}
		}
	}
}
