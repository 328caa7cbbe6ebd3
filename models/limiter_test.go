package models_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
	"github.com/pawlrun/pawl/models"
)

// What one run learns about a model and a key holds for the next one, on any wire, and
// reaches the machine as throttled, with the time to wait. It does not hold for other
// models and keys.
func TestRunsOfAProcessShareWhatAProviderSays(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	environment := func(key string) func(string) string {
		return env("ANTHROPIC_API_KEY", key, "ANTHROPIC_BASE_URL", server.URL, "OPENAI_API_KEY", key, "OPENAI_BASE_URL", server.URL,
			"GEMINI_API_KEY", key, "GOOGLE_GEMINI_BASE_URL", server.URL, "OLLAMA_HOST", server.URL, "OLLAMA_API_KEY", key)
	}
	var limiter transport.Limiter
	for _, provider := range []string{"anthropic", "openai", "openai-chat", "google", "ollama"} {
		asked.Store(0)
		for i, run := range []struct {
			key, model string
			// asked is how often the provider was asked in all.
			asked int64
		}{
			{"k", "m", 1}, {"k", "m", 1}, {"k", "another", 2}, {"k", "another", 2}, {"j", "m", 3}, {"j", "m", 3}, {"k", "m", 3},
		} {
			r := &models.Resolver{Getenv: environment(run.key), Limiter: &limiter}
			m, name, err := r.Open(provider + "/" + run.model)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(context.Background(), &llm.Request{Model: name, Messages: []*llm.Message{llm.UserText("hi")}})
			failure, ok := errors.AsType[*llm.Error](err)
			if !ok || failure.Class != llm.ClassThrottled || !failure.HasRetryAfter || failure.RetryAfter < time.Hour {
				t.Errorf("%s, run %d: %v", provider, i+1, err)
			}
			if n := asked.Load(); n != run.asked {
				t.Errorf("%s, run %d, of %s with the key %s: the provider was asked %d times in all, want %d", provider, i+1, run.model, run.key, n, run.asked)
			}
		}
	}
}
