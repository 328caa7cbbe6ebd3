package login_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/host/login"
	"github.com/pawlrun/pawl/internal/mcptest"
)

const asChild = "PAWL_LOGIN_TEST_URL"

func TestMain(m *testing.M) {
	if at := os.Getenv(asChild); at != "" {
		_, _ = io.ReadAll(os.Stdin) // all processes begin at once
		l := login.Login{Server: login.Server{URL: at}, Dir: os.Getenv("PAWL_LOGIN_TEST_DIR")}
		token, err := l.Token(context.Background(), "")
		fmt.Println(token, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func begun(t *testing.T, s login.Server, change func(*mcptest.OAuth)) (*mcptest.OAuth, *login.Login, *[]string) {
	t.Helper()
	o := mcptest.NewOAuth(http.NotFoundHandler())
	t.Cleanup(o.Close)
	if change != nil {
		change(o)
	}
	s.URL = o.URL + "/mcp"
	var learned []string
	var mu sync.Mutex
	l := &login.Login{Server: s, Dir: filepath.Join(t.TempDir(), "mcp"), Learn: func(v string) {
		mu.Lock()
		defer mu.Unlock()
		learned = append(learned, v)
	}}
	return o, l, &learned
}

func TestALoginGivesATokenThatOnlyItsUserCanRead(t *testing.T) {
	for _, c := range []struct {
		name   string
		server login.Server
		change func(*mcptest.OAuth)
		log    []string
	}{
		{"a client that is registered now", login.Server{}, nil, []string{"register", "authorize registered read write", "token authorization_code registered"}},
		{"scopes", login.Server{Scopes: []string{"read"}}, nil, []string{"register", "authorize registered read", "token authorization_code registered"}},
		{"a client with a document", login.Server{ClientID: "https://pawl.example/client.json"}, func(o *mcptest.OAuth) { o.Documents = true },
			[]string{"authorize https://pawl.example/client.json read write", "token authorization_code https://pawl.example/client.json"}},
		{"a document that the server does not take", login.Server{ClientID: "https://pawl.example/client.json"}, nil,
			[]string{"register", "authorize registered read write", "token authorization_code registered"}},
		{"a server at which everybody begins a session", login.Server{}, func(o *mcptest.OAuth) { o.Open = true },
			[]string{"register", "authorize registered read write", "token authorization_code registered"}},
		{"a client that is known", login.Server{ClientID: "known"}, nil, []string{"authorize known read write", "token authorization_code known"}},
	} {
		o, l, learned := begun(t, c.server, c.change)
		if _, err := l.Token(t.Context(), ""); !errors.Is(err, login.ErrNeeded) {
			t.Errorf("%s: before the login: %v", c.name, err)
		}
		if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !slices.Equal(o.Log(), c.log) {
			t.Errorf("%s: the server had %q, want %q", c.name, o.Log(), c.log)
		}
		token, err := l.Token(t.Context(), "")
		if err != nil || !strings.HasPrefix(token, "access-") || !slices.Contains(*learned, token) {
			t.Errorf("%s: the token is %q, %v; known are %q", c.name, token, err, *learned)
		}
		if again, err := l.Token(t.Context(), ""); err != nil || again != token || len(o.Log()) != len(c.log) {
			t.Errorf("%s: a second one is %q, %v after %q", c.name, again, err, o.Log())
		}
		entries, err := os.ReadDir(l.Dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(entries, err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has the mode %v", c.name, e.Name(), info.Mode())
			}
		}
		if info, err := os.Stat(l.Dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the directory: %v, %v", c.name, info, err)
		}
	}
}

func TestALoginIsRefused(t *testing.T) {
	o, l, _ := begun(t, login.Server{}, func(o *mcptest.OAuth) { o.Issuer = "https://other.example" })
	if err := l.Begin(t.Context(), mcptest.Browse); err == nil || !strings.Contains(err.Error(), "issuer") {
		t.Errorf("another issuer: %v", err)
	}
	if _, err := l.Token(t.Context(), ""); !errors.Is(err, login.ErrNeeded) {
		t.Errorf("a token from another issuer: %v", err)
	}
	o.Set(func() { o.Issuer = "" })
	forged := func(page string) error {
		u := page[strings.Index(page, "redirect_uri=")+len("redirect_uri="):]
		u, _, _ = strings.Cut(u, "&")
		u = strings.NewReplacer("%3A", ":", "%2F", "/").Replace(u)
		if err := mcptest.Browse(u + "?code=x&state=guessed&iss=" + o.URL); err == nil {
			return errors.New("an answer with another state is taken")
		}
		return mcptest.Browse(page)
	}
	if err := l.Begin(t.Context(), forged); err != nil {
		t.Errorf("after a forged answer: %v", err)
	}
	plain := mcptest.NewOAuth(http.NotFoundHandler())
	defer plain.Close()
	none := login.Login{Server: login.Server{URL: plain.URL + "/.well-known/oauth-authorization-server"}, Dir: t.TempDir()}
	if err := none.Begin(t.Context(), mcptest.Browse); err == nil || !strings.Contains(err.Error(), "asks for no login") {
		t.Errorf("a server without logins: %v", err)
	}
}

func TestATokenIsRenewedOnceItHasExpiredOrIsRefused(t *testing.T) {
	o, l, learned := begun(t, login.Server{}, func(o *mcptest.OAuth) { o.Lifetime = 1 })
	if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
		t.Fatal(err)
	}
	o.Set(func() { o.Lifetime = 0 })
	first, err := l.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Token(t.Context(), first)
	if err != nil || second == first {
		t.Errorf("after a refusal: %q, %v", second, err)
	}
	if third, err := l.Token(t.Context(), first); err != nil || third != second {
		t.Errorf("a second refusal of the same token: %q, %v", third, err)
	}
	if n := strings.Count(strings.Join(o.Log(), "\n"), "token refresh_token registered"); n != 2 {
		t.Errorf("%d renewals, want 2: %q", n, o.Log())
	}
	for _, token := range []string{first, second} {
		if !slices.Contains(*learned, token) {
			t.Errorf("%s is not known", token)
		}
	}
	o.Revoke(true)
	if _, err := l.Token(t.Context(), second); !errors.Is(err, login.ErrNeeded) || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("after a revocation: %v", err)
	}
	o.Close()
	if _, err := l.Token(t.Context(), second); err == nil || errors.Is(err, login.ErrNeeded) {
		t.Errorf("without the authorization server: %v", err)
	}
}

func TestFiveProcessesRenewATokenOnce(t *testing.T) {
	o, l, _ := begun(t, login.Server{}, func(o *mcptest.OAuth) { o.Lifetime = 1 })
	if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
		t.Fatal(err)
	}
	o.Set(func() { o.Lifetime = 0 })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var starts []io.Closer
	var all [5]strings.Builder
	var processes []*exec.Cmd
	for i := range all {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), asChild+"="+l.URL, "PAWL_LOGIN_TEST_DIR="+l.Dir)
		c.Stdout, c.Stderr = &all[i], &all[i]
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		starts, processes = append(starts, in), append(processes, c)
	}
	for _, in := range starts {
		_ = in.Close()
	}
	for _, c := range processes {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	for i := range all {
		if all[i].String() != all[0].String() || !strings.HasPrefix(all[i].String(), "access-") || !strings.Contains(all[i].String(), "<nil>") {
			t.Errorf("process %d got %s", i, &all[i])
		}
	}
	if n := strings.Count(strings.Join(o.Log(), "\n"), "token refresh_token"); n != 1 {
		t.Errorf("%d renewals: %q", n, o.Log())
	}
}

// A second login that asks for further scopes asks for those of the first one too.
func TestALoginCanAskForFurtherScopes(t *testing.T) {
	for want, s := range map[string]login.Server{"more read write": {}, "more read": {Scopes: []string{"read"}}} {
		o, l, _ := begun(t, s, nil)
		l.Further = []string{"more"}
		if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(o.Log(), "authorize registered "+want) {
			t.Errorf("the server had %q, want %s", o.Log(), want)
		}
		l.Further = []string{"admin"}
		if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(o.Log(), "authorize registered admin "+want) {
			t.Errorf("the server had %q, want admin %s", o.Log(), want)
		}
	}
}

func TestTheSecretOfAClientIsNotKept(t *testing.T) {
	o, l, _ := begun(t, login.Server{ClientID: "known", ClientSecret: "client-secret-1"}, func(o *mcptest.OAuth) { o.Lifetime = 1 })
	if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Token(t.Context(), ""); err != nil || !slices.Contains(o.Log(), "token refresh_token known") {
		t.Errorf("%v after %q", err, o.Log())
	}
	files, err := filepath.Glob(filepath.Join(l.Dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "client-secret") {
			t.Errorf("%s: %s, %v", file, text, err)
		}
	}
	if all := login.Tokens(l.Dir); len(all) != 2 || !strings.HasPrefix(all[0], "access-") || !strings.HasPrefix(all[1], "refresh-") {
		t.Errorf("the tokens are %q", all)
	}
	if was, err := l.Forget(t.Context()); err != nil || !was || len(login.Tokens(l.Dir)) != 0 {
		t.Errorf("forgotten: %t, %v", was, err)
	}
	if was, err := l.Forget(t.Context()); err != nil || was {
		t.Errorf("a second time: %t, %v", was, err)
	}
}

// A logout revokes both tokens, of a client with a secret too. It sends them to no other
// machine without encryption, and a server that does not answer leaves no login.
func TestALogoutRevokesTheTokens(t *testing.T) {
	revoked := []string{"revoke refresh_token known", "revoke access_token known"}
	for name, c := range map[string]struct {
		server login.Server
		change func(*mcptest.OAuth)
		close  bool
		log    []string
	}{
		"a public client":        {server: login.Server{ClientID: "known"}, log: revoked},
		"a client with a secret": {server: login.Server{ClientID: "known", ClientSecret: "client-secret-1"}, log: revoked},
		"another machine":        {server: login.Server{ClientID: "known"}, change: func(o *mcptest.OAuth) { o.RevokeAt = "http://192.0.2.1/revocation" }},
		"no server any more":     {server: login.Server{ClientID: "known"}, close: true},
	} {
		o, l, _ := begun(t, c.server, c.change)
		if err := l.Begin(t.Context(), mcptest.Browse); err != nil {
			t.Fatal(err)
		}
		if c.close {
			o.Close()
		}
		was, err := l.Forget(t.Context())
		if !was || (err != nil) != c.close || len(login.Tokens(l.Dir)) != 0 {
			t.Errorf("%s: forgotten: %t, %v", name, was, err)
		}
		if got := slices.DeleteFunc(o.Log(), func(line string) bool { return !strings.HasPrefix(line, "revoke") }); !slices.Equal(got, c.log) {
			t.Errorf("%s: the server had %q, want %q", name, got, c.log)
		}
	}
}
