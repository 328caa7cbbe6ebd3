package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal/memory"
)

// A page that is open in the user's browser must not reach the server, neither
// by its address (CSRF) nor by a name that leads to it (DNS rebinding).
func TestRequestsForAnotherHostAreRefused(t *testing.T) {
	s := listening(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	for name, c := range map[string]struct {
		how  func(*http.Request)
		want int
	}{
		"no browser":                   {nil, 200},
		"localhost":                    {host("localhost:" + port), 200},
		"LOCALHOST":                    {host("LOCALHOST:" + port), 200},
		"a rebound name":               {host("evil.example:" + port), 403},
		"a name that begins alike":     {host("localhost.evil.example:" + port), 403},
		"another port":                 {host("127.0.0.1:1"), 403},
		"no port":                      {host("127.0.0.1"), 403},
		"another loopback address":     {host("127.0.0.2:" + port), 403},
		"the same origin":              {header("Origin", s.URL), 200},
		"another site":                 {header("Origin", "http://evil.example"), 403},
		"another port of localhost":    {header("Origin", "http://127.0.0.1:1"), 403},
		"the origin in another way":    {header("Origin", "https"+strings.TrimPrefix(s.URL, "http")), 403},
		"an opaque origin":             {header("Origin", "null"), 403},
		"an empty origin":              {header("Origin", ""), 403},
		"two origins":                  {header("Origin", s.URL, "http://evil.example"), 403},
		"fetched by the same page":     {header("Sec-Fetch-Site", "same-origin"), 200},
		"typed in":                     {header("Sec-Fetch-Site", "none"), 200},
		"fetched by another site":      {header("Sec-Fetch-Site", "cross-site"), 403},
		"fetched by another localhost": {header("Sec-Fetch-Site", "same-site"), 403},
	} {
		if got, _ := s.ask(http.MethodGet, "/v1/runs", "", c.how); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
		if got, _ := s.ask(http.MethodGet, "/", "", c.how); got != c.want {
			t.Errorf("%s: the page gets status %d, want %d", name, got, c.want)
		}
		if got, _ := s.ask(http.MethodPost, "/v1/runs/none/approve", `{"callId": "x"}`, c.how); (got == 403) != (c.want == 403) {
			t.Errorf("%s: a decision gets status %d", name, got)
		}
	}
}

func TestAServerWithoutAGuardIsNotMade(t *testing.T) {
	for name, o := range map[string]server.Options{
		"no token, no file of tokens, and nothing said": {User: "somebody"},
		"a token and NoAuth":                            {User: "somebody", Token: "pawl_0123456789", NoAuth: true},
	} {
		if _, err := server.New(o); err == nil || !strings.Contains(err.Error(), "one of Tokens, Token and NoAuth") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request without a connection of this machine is refused, whatever it says.
func TestOnlyLoopbackConnectionsAreServed(t *testing.T) {
	s, _ := newServer(t, nil)
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:3001/v1/runs", nil)
	for _, remote := range []string{"192.0.2.1:4000", "nonsense", "127.0.0.1:4000"} {
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		conforming(t, s).ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("from %s: status %d", remote, w.Code)
		}
	}
}

// A link of another site leads to the page, which holds no data, and to nothing else.
func TestALinkOfAnotherSiteLeadsToThePage(t *testing.T) {
	s := listening(t, nil)
	link := func(r *http.Request) {
		r.Header["Sec-Fetch-Site"], r.Header["Sec-Fetch-Mode"] = []string{"cross-site"}, []string{"navigate"}
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/v1/runs": http.StatusForbidden, "/metrics": http.StatusForbidden} {
		if got, _ := s.ask(http.MethodGet, path, "", link); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	if got, _ := s.ask(http.MethodPost, "/v1/runs/none/approve", `{"callId": "x"}`, link); got != http.StatusForbidden {
		t.Errorf("a decision gets status %d", got)
	}
}

// The token of a start is that of the server's own user, and serves this machine alone.
func TestTheTokenOfAStartIsItsUsers(t *testing.T) {
	const token = "pawl_the-token-of-this-start"
	s, _ := newServerWith(t, memory.New(nil), nil, func(o *server.Options) { o.NoAuth, o.Token = false, token })
	ask := func(path, authorization, from string) (int, string) {
		r := requestFromHere(t.Context(), http.MethodGet, path, "")
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		conforming(t, s).ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const here, elsewhere = "127.0.0.1:4000", "192.0.2.1:4000"
	for range 2 { // it counts for more than one request
		if code, body := ask("/v1/principal", "Bearer "+token, here); code != http.StatusOK || body != `{"name":"somebody","role":"admin","proof":"token"}`+"\n" {
			t.Errorf("%d %s", code, body)
		}
	}
	for _, scheme := range []string{"bearer", "BEARER"} {
		if code, _ := ask("/v1/principal", scheme+" "+token, here); code != http.StatusOK {
			t.Errorf("%s: %d", scheme, code)
		}
	}
	for _, wrong := range []string{"", "Bearer", "Basic " + token, "Bearer pawl_another", "Bearer " + token + "x", "Bearer " + strings.Repeat("x", 60_000)} {
		if code, body := ask("/v1/principal", wrong, here); code != http.StatusUnauthorized || !strings.Contains(body, "'pawl token show'") {
			t.Errorf("%.40q: %d %s", wrong, code, body)
		}
	}
	if code, _ := ask("/v1/principal", "Bearer "+token, elsewhere); code != http.StatusForbidden {
		t.Errorf("from another machine: %d", code)
	}
	for _, open := range []string{"/", "/healthz", "/readyz"} {
		if code, _ := ask(open, "", here); code != http.StatusOK {
			t.Errorf("%s without a token: %d", open, code)
		}
	}
}
