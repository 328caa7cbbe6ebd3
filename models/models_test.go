package models_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// env is an environment that holds nothing else.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestNamesThatOpenNothingSaySo(t *testing.T) {
	r := models.Resolver{Getenv: env()}
	for target, want := range map[string]string{
		"gpt-5":            `"gpt-5" is not provider/model`,
		"openai/":          `"openai/" is not provider/model`,
		"acme/one":         `there is no provider "acme"; there are anthropic, deepseek,`,
		"replay/k7x2":      "there is no journal to replay a run from",
		"scripted/no.yaml": "the script no.yaml does not exist",
	} {
		_, _, err := r.Open(target)
		if !errors.Is(err, llm.ErrUnknownModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestMissingKeyNamesItsVariable(t *testing.T) {
	r := models.Resolver{Getenv: env()}
	for target, variable := range map[string]string{
		"anthropic/claude-sonnet-4-5": "ANTHROPIC_API_KEY", "openai/gpt-5": "OPENAI_API_KEY", "openai-chat/gpt-4o": "OPENAI_API_KEY", "google/gemini-2.5-pro": "GEMINI_API_KEY",
	} {
		err := r.Check(target)
		failure, ok := errors.AsType[*llm.Error](err)
		if !errors.Is(err, models.ErrNoKey) || !ok || failure.Class != llm.ClassAuth || !strings.Contains(err.Error(), "set "+variable) {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestAnAddressThatCannotBeAskedIsRefusedBeforeTheRun(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "api.example.com/v1", "ftp://api.example.com", "https://", "http://[::1", "https://a.b\n"} {
		r := models.Resolver{Getenv: env("ANTHROPIC_API_KEY", "k", "ANTHROPIC_BASE_URL", address)}
		err := r.Check("anthropic/claude-sonnet-4-5")
		if err == nil || !strings.Contains(err.Error(), "provider anthropic: ANTHROPIC_BASE_URL is no address such as https://") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for name, provider := range map[string]models.Provider{"acme": {BaseURL: "acme:443"}, "anthropic": {BaseURL: "acme:443"}} {
		r := models.Resolver{Getenv: env("ANTHROPIC_API_KEY", "k"), Config: models.Config{Providers: map[string]models.Provider{name: provider}}}
		if err := r.Check(name + "/one"); err == nil || !strings.Contains(err.Error(), "provider "+name+": base_url is no address") {
			t.Errorf("of a config: %v", err)
		}
	}
}

// The path that a provider is asked at, and the key that it sees, for each way
// to write its endpoint down.
func TestEndpointsAreTakenAsTheOfficialSDKsTakeThem(t *testing.T) {
	var path, key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.RequestURI
		key = r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
	}))
	defer server.Close()
	for _, c := range []struct {
		target, path, key string
		env               []string
	}{
		{"anthropic/claude-sonnet-4-5", "/v1/messages", "k", []string{"ANTHROPIC_API_KEY", "k\n", "ANTHROPIC_BASE_URL", server.URL}},
		{"anthropic/claude-sonnet-4-5", "/v1/messages", "Bearer t", []string{"ANTHROPIC_AUTH_TOKEN", "t", "ANTHROPIC_BASE_URL", server.URL + "/"}},
		{"openai/gpt-5", "/v1/responses", "Bearer k", []string{"OPENAI_API_KEY", "k", "OPENAI_BASE_URL", server.URL + "/v1"}},
		{"openai-chat/m", "/v1/chat/completions", "Bearer k", []string{"OPENAI_API_KEY", "k", "OPENAI_BASE_URL", server.URL + "/v1/"}},
		{"openai-chat/m", "/v1/chat/completions", "", []string{"OPENAI_BASE_URL", server.URL + "/v1"}},
		{"google/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent", "k", []string{"GEMINI_API_KEY", "k", "GOOGLE_GEMINI_BASE_URL", server.URL}},
		{"google/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent", "g", []string{"GOOGLE_API_KEY", "g", "GOOGLE_GEMINI_BASE_URL", server.URL}},
		{"ollama/qwen3:8b", "/v1/chat/completions", "", []string{"OLLAMA_HOST", strings.TrimPrefix(server.URL, "http://")}},
		{"ollama/qwen3:8b", "/v1/chat/completions", "", []string{"OLLAMA_HOST", server.URL + "/"}},

		// A gateway may take its key in a query, on which the SDKs do not agree.
		{"anthropic/claude-sonnet-4-5", "/x/v1/messages?token=t&v=1", "k", []string{"ANTHROPIC_API_KEY", "k", "ANTHROPIC_BASE_URL", server.URL + "/x/?token=t&v=1"}},
		{"openai/gpt-5", "/x/responses?token=t/", "Bearer k", []string{"OPENAI_API_KEY", "k", "OPENAI_BASE_URL", server.URL + "/x?token=t/"}},
		{"openai-chat/m", "/x/chat/completions?token=t%2F", "", []string{"OPENAI_BASE_URL", server.URL + "/x?token=t%2F#part"}},
		{"google/gemini-2.5-pro", "/x/v1beta/models/gemini-2.5-pro:generateContent?token=t", "k", []string{"GEMINI_API_KEY", "k", "GOOGLE_GEMINI_BASE_URL", server.URL + "/x?token=t"}},
		{"ollama/qwen3:8b", "/x/v1/chat/completions?token=t", "", []string{"OLLAMA_HOST", server.URL + "/x/?token=t"}},
		{"ollama/qwen3:8b", "/v1/chat/completions?token=/t", "", []string{"OLLAMA_HOST", strings.TrimPrefix(server.URL, "http://") + "?token=/t"}},
	} {
		path, key = "", ""
		r := models.Resolver{Getenv: env(c.env...)}
		m, name, err := r.Open(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(context.Background(), &llm.Request{Model: name, Messages: []*llm.Message{llm.UserText("hi")}}); err == nil {
			t.Fatal("the server refuses and the call went well")
		}
		if path != c.path || key != c.key {
			t.Errorf("%s with %v: asked at %q with %q, want %q with %q", c.target, c.env, path, key, c.path, c.key)
		}
	}
}

func TestScriptIsLookedForBesideTheFileAndReadOnce(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	script := filepath.Join(second, "s.yaml")
	if err := os.WriteFile(script, []byte("- text: hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := models.Resolver{Dirs: []string{first, second}}
	a, name, err := r.Open("scripted/s.yaml")
	if err != nil || name != "s.yaml" {
		t.Fatal(name, err)
	}
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	b, _, err := r.Open("scripted/s.yaml")
	if err != nil || a != b {
		t.Errorf("the second time the script was read again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(first, "bad.yaml"), []byte("- txt: hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Check("scripted/bad.yaml"); err == nil || !strings.Contains(err.Error(), "bad.yaml") {
		t.Errorf("a wrong script: %v", err)
	}
}
