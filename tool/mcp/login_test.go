package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// guarded is a server that takes one token, and a login that has one.
type guarded struct {
	*httptest.Server
	mu sync.Mutex
	// good is the token that the server takes, empty for none. lacks is the challenge of
	// a refusal for want of a scope.
	good, lacks string
	// calls are the requests for calls that arrived, also those that were refused.
	calls int
	// kept is the token of the login, and next the one that replaces it once it is
	// refused; without one, a login is needed, or problem is what is wrong.
	kept, next string
	problem    error
}

func newGuarded(t *testing.T, w *world) *guarded {
	t.Helper()
	g := &guarded{good: "one", kept: "one"}
	server := &mcptest.Server{Ledger: w.ledgerFile()}
	g.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		good, lacks := r.Header.Get("Authorization") == "Bearer "+g.good, g.lacks
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			g.calls++
		}
		g.mu.Unlock()
		switch {
		case !good:
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		case lacks != "" && bytes.Contains(body, []byte(`"tools/call"`)):
			rw.Header().Set("WWW-Authenticate", lacks)
			rw.WriteHeader(http.StatusForbidden)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			server.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *guarded) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *guarded) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

func (g *guarded) options() mcp.Options {
	return mcp.Options{Server: "docs", URL: g.URL, Login: &mcp.Login{Command: "pawl mcp login a.yaml docs", Token: g.token}}
}

func (g *guarded) token(_ context.Context, refused string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept != "" && g.kept != refused {
		return g.kept, nil
	}
	if g.next == "" {
		if g.problem != nil {
			return "", g.problem
		}
		return "", fmt.Errorf("%w at the server", mcp.ErrLoginNeeded)
	}
	g.kept, g.next = g.next, ""
	return g.kept, nil
}

func TestRefusedTokenIsRenewedAndTheCallMadeOnce(t *testing.T) {
	w := newWorld(t)
	g := newGuarded(t, w)
	s := connect(t, g.options())
	for i, renewed := range []string{"two", "three"} {
		g.set(func() { g.good, g.next = renewed, renewed })
		if r := finish(t, s, "docs.echo", `{"text":"hi"}`, 1, nil); r.Output != `{"text":"hi"}` {
			t.Errorf("the result is %+v", r)
		}
		// The server saw a refused request and a good one, and has one effect for each call.
		if calls := w.ledger(t, "call"); len(calls) != i+1 || g.count() != 2*(i+1) {
			t.Errorf("%d requests have the effects %q", g.count(), calls)
		}
	}
}

func TestCallWaitsForALogin(t *testing.T) {
	for name, c := range map[string]struct {
		change func(g *guarded)
		cured  func(g *guarded)
		// sent is how many requests arrive before the question.
		sent    int
		command string
	}{
		"a token that is not renewed": {func(g *guarded) { g.good = "two" }, func(g *guarded) { g.kept = "two" }, 1, ""},
		"no token":                    {func(g *guarded) { g.kept = "" }, func(g *guarded) { g.kept = "one" }, 0, ""},
		"a new token that is refused": {func(g *guarded) { g.good, g.next = "three", "two" }, func(g *guarded) { g.kept = "three" }, 2, ""},
		"too few scopes": {
			func(g *guarded) { g.lacks = `Bearer error="insufficient_scope", scope="a:write b $(reboot) -x ;"` },
			func(g *guarded) { g.lacks = "" }, 1, " --scope a:write --scope b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := newGuarded(t, w)
			first := connect(t, g.options())
			g.set(func() { c.change(g) })
			f := asked(t, first, "docs.echo", `{"text":"hi"}`, 1, nil)
			if f.Command != "pawl mcp login a.yaml docs"+c.command || !strings.Contains(f.Message, f.Command) || f.URL != "" {
				t.Errorf("it asks %+v", f)
			}
			if calls := w.ledger(t, "call"); len(calls) != 0 || g.count() != c.sent {
				t.Errorf("before the login %d requests have the effects %q", g.count(), calls)
			}
			if _, err := find(t, first, "docs.echo").Run(t.Context(), callWith(2, declines(f))); err == nil || !strings.Contains(err.Error(), "declined") || g.count() != c.sent {
				t.Errorf("after it is declined: %v after %d requests", err, g.count())
			}
			// Not yet: the same question, here and in another process.
			early := mcp.Resume(g.options(), first.Pin())
			defer early.Close()
			if f := asked(t, early, "docs.echo", `{"text":"hi"}`, 1, nil); f.Command == "" {
				t.Errorf("another process asks %+v", f)
			}
			if f := asked(t, first, "docs.echo", `{"text":"hi"}`, 2, gives(f, `{}`)); f.Command == "" {
				t.Errorf("it asks %+v", f)
			}
			g.set(func() { c.cured(g) })
			second := mcp.Resume(g.options(), first.Pin()) // of another process
			defer second.Close()
			if r := finish(t, second, "docs.echo", `{"text":"hi"}`, 3, gives(f, `{}`)); r.Output != `{"text":"hi"}` {
				t.Errorf("the result is %+v", r)
			}
			if calls := w.ledger(t, "call"); len(calls) != 1 || !strings.Contains(calls[0], "key-1") {
				t.Errorf("the calls are %q", calls)
			}
		})
	}
}

func TestServerIsNotStartedWithoutALogin(t *testing.T) {
	g := newGuarded(t, newWorld(t))
	g.kept = ""
	_, err := mcp.Connect(t.Context(), g.options())
	if !errors.As(err, new(*mcp.StartError)) || !errors.Is(err, mcp.ErrLoginNeeded) || !strings.HasSuffix(err.Error(), "log in with: pawl mcp login a.yaml docs") {
		t.Errorf("the error is %v", err)
	}
}

func TestCallWithoutARenewedTokenHadNoEffect(t *testing.T) {
	w := newWorld(t)
	g := newGuarded(t, w)
	s := connect(t, g.options())
	g.set(func() { g.good, g.problem = "two", errors.New("no authorization server") })
	_, err := call(t.Context(), t, s, "docs.echo", `{}`)
	if kind, transient := kindOf(err); kind != event.ErrorUnavailable || !transient || !strings.Contains(err.Error(), "no authorization server") || len(w.ledger(t, "call")) != 0 {
		t.Errorf("the error is %v (%s)", err, kind)
	}
	g.set(func() { g.next = "two" })
	if r := finish(t, s, "docs.echo", `{}`, 2, nil); r.IsError || len(w.ledger(t, "call")) != 1 {
		t.Errorf("the result is %+v", r)
	}
}

func callWith(attempt int, in *event.FormAnswer) tool.Call {
	return tool.Call{ID: "c1", Key: "key-1", Attempt: attempt, Args: []byte(`{"text":"hi"}`), Input: in}
}

func TestServerThatWantsALoginSaysHowToLogIn(t *testing.T) {
	w := newWorld(t)
	g := newGuarded(t, w)
	o := g.options()
	_, err := mcp.Connect(t.Context(), mcp.Options{Server: "docs", URL: g.URL, Unauthorized: "add 'oauth: {}'"})
	if !errors.As(err, new(*mcp.StartError)) || !strings.Contains(err.Error(), "401 Unauthorized; add 'oauth: {}'") {
		t.Errorf("the start fails with %v", err)
	}
	// A status of 401 says that the call was not applied.
	s := mcp.Resume(mcp.Options{Server: "docs", URL: g.URL, Unauthorized: "add 'oauth: {}'"}, connect(t, o).Pin())
	t.Cleanup(func() { _ = s.Close() })
	for range 2 {
		_, err = call(t.Context(), t, s, "docs.echo", `{}`)
		if err == nil || !strings.Contains(err.Error(), "add 'oauth: {}'") || len(w.ledger(t, "call")) != 0 {
			t.Errorf("the call fails with %v", err)
		}
		if kind, _ := kindOf(err); kind != event.ErrorUnavailable {
			t.Errorf("the call is %s", kind)
		}
	}
}
