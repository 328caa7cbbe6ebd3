package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/server"
)

// A page that is open in the user's browser must not reach the server, neither
// by its address (CSRF) nor by a name that leads to it (DNS rebinding).
func TestRequestsThatWereMeantForSomebodyElseAreRefused(t *testing.T) {
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
		if got, _ := s.ask(http.MethodPost, "/v1/runs/none/approve", `{"callId": "x"}`, c.how); (got == 403) != (c.want == 403) {
			t.Errorf("%s: a decision gets status %d", name, got)
		}
	}
}

func TestWhoIsNotAdmittedGetsNothing(t *testing.T) {
	s, _ := newServer(t, func(context.Context, netip.AddrPort, netip.AddrPort) error { return errors.New("somebody else") }, nil)
	web := httptest.NewServer(conforming(t, s))
	defer web.Close()
	for _, path := range []string{"/v1/runs", "/healthz", "/nothing", "/socket.io/?EIO=4&transport=polling"} {
		answer, err := web.Client().Get(web.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode < 400 || answer.StatusCode == http.StatusNotFound {
			t.Errorf("%s: status %d", path, answer.StatusCode)
		}
	}
}

func TestAServerWithoutAGuardIsNotMade(t *testing.T) {
	if _, err := server.New(server.Options{User: "somebody"}); err == nil {
		t.Error("a server that admits everybody was made")
	}
}

// A request without a connection of this machine is refused, whatever it says.
func TestOnlyLoopbackConnectionsAreServed(t *testing.T) {
	s, _ := newServer(t, anybody, nil)
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
