package models_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// asked makes one call of a target and returns what the server saw of it.
func asked(t *testing.T, r *models.Resolver, target string, seen func() *http.Request) *http.Request {
	t.Helper()
	m, name, err := r.Open(target)
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	_, err = m.Generate(context.Background(), &llm.Request{Model: name, Messages: []*llm.Message{llm.UserText("hi")}})
	if err == nil {
		t.Fatal("the server refuses and the call went well")
	}
	if seen() == nil {
		t.Fatalf("%s: the server was not asked: %v", target, err)
	}
	return seen()
}

func refusing(t *testing.T) (url string, seen func() *http.Request) {
	var last *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() *http.Request { return last }
}

func TestConfigSaysHowAProviderIsReached(t *testing.T) {
	url, seen := refusing(t)
	for _, c := range []struct {
		target, path, auth string
		provider           models.Provider
		env                []string
	}{
		{"acme/m", "/v1/chat/completions", "", models.Provider{BaseURL: url + "/v1"}, nil},
		{"acme/m", "/v1/chat/completions", "Bearer k", models.Provider{BaseURL: url + "/v1", APIKeyEnv: "ACME"}, []string{"ACME", "k"}},
		{"groq/m", "/x/chat/completions", "Bearer g", models.Provider{BaseURL: url + "/x"}, []string{"GROQ_API_KEY", "g"}},
		{"vllm/m", "/v1/chat/completions", "", models.Provider{BaseURL: url + "/v1"}, nil},
		{"ollama/m", "/v1/chat/completions", "", models.Provider{BaseURL: url + "/v1"}, []string{"OLLAMA_HOST", "127.0.0.1:1"}},
		{"openai/m", "/v1/responses", "Bearer team", models.Provider{BaseURL: url + "/v1", APIKeyEnv: "TEAM"}, []string{"TEAM", "team", "OPENAI_API_KEY", "mine", "OPENAI_BASE_URL", "http://127.0.0.1:1"}},
		{"anthropic/m", "/v1/messages", "team", models.Provider{BaseURL: url, APIKeyEnv: "TEAM"}, []string{"TEAM", "team", "ANTHROPIC_AUTH_TOKEN", "mine"}},
		{"google/m", "/v1beta/models/m:generateContent", "team", models.Provider{BaseURL: url, APIKeyEnv: "TEAM"}, []string{"TEAM", "team"}},
	} {
		name, _, _ := strings.Cut(c.target, "/")
		c.provider.Headers = map[string]string{"X-Team": "${WHO} & $5"}
		r := &models.Resolver{Getenv: env(append(c.env, "WHO", "agents")...), Config: models.Config{Providers: map[string]models.Provider{name: c.provider}}}
		req := asked(t, r, c.target, seen)
		auth := req.Header.Get("Authorization") + req.Header.Get("X-Api-Key") + req.Header.Get("X-Goog-Api-Key")
		if req.URL.Path != c.path || auth != c.auth || req.Header.Get("X-Team") != "agents & $5" {
			t.Errorf("%s: asked at %s with %q and X-Team %q", c.target, req.URL.Path, auth, req.Header.Get("X-Team"))
		}
	}
}

func TestRequestsGoThroughTheProxyOfTheConfig(t *testing.T) {
	proxy, seen := refusing(t)
	r := &models.Resolver{
		Getenv: env("CORPORATE_PROXY", proxy),
		Config: models.Config{Providers: map[string]models.Provider{"acme": {BaseURL: "http://api.acme.example/v1", Proxy: "${CORPORATE_PROXY}"}}},
	}
	if req := asked(t, r, "acme/m", seen); req.URL.Host != "api.acme.example" {
		t.Errorf("the proxy was asked for %s", req.URL)
	}
}

func TestVariablesThatTheConfigNamesMustBeSet(t *testing.T) {
	for what, p := range map[string]models.Provider{
		"key":    {BaseURL: "http://127.0.0.1:1", APIKeyEnv: "ACME_KEY"},
		"header": {BaseURL: "http://127.0.0.1:1", Headers: map[string]string{"X-T": "${ACME_KEY}"}},
		"proxy":  {BaseURL: "http://127.0.0.1:1", Proxy: "${ACME_KEY}"},
	} {
		r := &models.Resolver{Getenv: env(), Config: models.Config{Providers: map[string]models.Provider{"acme": p}}}
		if err := r.Check("acme/m"); !errors.Is(err, models.ErrNoKey) || !strings.Contains(err.Error(), "set ACME_KEY") {
			t.Errorf("%s: %v", what, err)
		}
	}
	r := &models.Resolver{Getenv: env("P", "user:hunter2@"), Config: models.Config{Providers: map[string]models.Provider{"vllm": {Proxy: "${P}"}}}}
	if err := r.Check("vllm/m"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a proxy without an address: %v", err)
	}
}

// A variable before the "@" is a password as it is, whatever signs it has; one
// that is the whole address is an address.
func TestAProxysPasswordMayHaveAnySign(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://team:${P}@HOST":       "team:p@ss/w%rd?#: x",
		"http://${P}@HOST":            "p@ss/w%rd?#: x:", // a name without a password
		"http://t%40m:${P}@HOST/":     "t@m:p@ss/w%rd?#: x",
		"http://team:pl%20ain@HOST":   "team:pl ain",
		"${WHOLE}":                    "a:b",
		"http://HOST":                 "",
		"http://team:${P}-${P}@HOST/": "team:p@ss/w%rd?#: x-p@ss/w%rd?#: x",
	} {
		t.Run(proxy, func(t *testing.T) {
			address, seen := refusing(t)
			host := strings.TrimPrefix(address, "http://")
			r := &models.Resolver{
				Getenv: env("P", "p@ss/w%rd?#: x", "WHOLE", "http://a:b@"+host),
				Config: models.Config{Providers: map[string]models.Provider{
					"acme": {BaseURL: "http://api.acme.example/v1", Proxy: strings.ReplaceAll(proxy, "HOST", host)},
				}},
			}
			got, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(asked(t, r, "acme/m", seen).Header.Get("Proxy-Authorization"), "Basic "))
			if string(got) != want {
				t.Errorf("the proxy was told %q, want %q", got, want)
			}
		})
	}
	for _, proxy := range []string{"http://team:%zz@host", "http://team:x@", "://", "host:3128"} {
		r := &models.Resolver{Getenv: env(), Config: models.Config{Providers: map[string]models.Provider{"vllm": {Proxy: proxy}}}}
		if err := r.Check("vllm/m"); err == nil || strings.Contains(err.Error(), "team") {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}

func TestConfigKnowsModelsBetterThanTheTable(t *testing.T) {
	free, dear := &llm.Price{}, &llm.Price{Input: 9, Output: 99, CacheRead: 9, CacheWrite: 9}
	r := &models.Resolver{Getenv: env(), Config: models.Config{
		Providers: map[string]models.Provider{"acme": {BaseURL: "http://acme.example/v1"}, "via": {BaseURL: "https://api.groq.com/openai/v1"}},
		Models: map[string]models.Override{
			"acme/free":    {Price: free, ContextWindow: 1000},
			"acme/window":  {ContextWindow: 2000},
			"openai/gpt-5": {Price: dear, MaxOutput: 7},
		},
	}}
	for target, want := range map[string]*llm.Price{
		"acme/free": free, "acme/window": nil, "acme/other": nil, "openai/gpt-5": dear,
		"vllm/anything": free, "groq/no-such": nil,
		"via/openai/gpt-oss-20b": r.Price("groq/openai/gpt-oss-20b"),
	} {
		if diff := cmp.Diff(want, r.Price(target)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	if p := r.Price("via/openai/gpt-oss-20b"); p == nil || p.Output == 0 {
		t.Errorf("a known address under another name: %v", p)
	}
	if info, ok := r.Lookup("acme/window"); !ok || info.ContextWindow != 2000 || info.Priced() {
		t.Errorf("got %+v, %t", info, ok)
	}
	if info, _ := r.Lookup("openai/gpt-5"); info.MaxOutput != 7 || info.ContextWindow != 400_000 {
		t.Errorf("what the config does not say is lost: %+v", info)
	}
}

// Whatever stands for a proxy, it is an address or an error, and neither says
// the password.
func FuzzProxy(f *testing.F) {
	for _, text := range []string{"http://team:${P}@host:3128", "${P}", "http://${P}:${P}@[::1]:1/", "socks5://a%zz@h", "http://h:${P}", "://@", "http://@/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &models.Resolver{Getenv: env("P", "hunter2#secret"), Config: models.Config{Providers: map[string]models.Provider{"vllm": {Proxy: text}}}}
		if err := r.Check("vllm/m"); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestAConfigSaysWhichVariablesHoldCredentials(t *testing.T) {
	config := models.Config{Providers: map[string]models.Provider{
		"a": {APIKeyEnv: "WORD", Headers: map[string]string{"X-Team": "${TEAM_PASS}/${WORD}", "X-Plain": "plain"}},
		"b": {Proxy: "http://${USER_NAME}:${PROXY_PASS}@proxy:3128"},
	}}
	if diff := cmp.Diff([]string{"PROXY_PASS", "TEAM_PASS", "USER_NAME", "WORD"}, config.Credentials()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (models.Config{}).Credentials(); len(got) != 0 {
		t.Errorf("no config names %v", got)
	}
}
