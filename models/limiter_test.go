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

// What one run is told holds for the next one, whichever wire they speak, and
// reaches the machine as what it is: throttled, with the time to wait.
func TestRunsOfAProcessShareWhatAProviderSays(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	environment := env("ANTHROPIC_API_KEY", "k", "ANTHROPIC_BASE_URL", server.URL, "OPENAI_API_KEY", "k", "OPENAI_BASE_URL", server.URL,
		"GEMINI_API_KEY", "k", "GOOGLE_GEMINI_BASE_URL", server.URL, "OLLAMA_HOST", server.URL)
	var limiter transport.Limiter
	for _, target := range []string{"anthropic/m", "openai/m", "openai-chat/m", "google/m", "ollama/m"} {
		asked.Store(0)
		for run := range 2 {
			r := &models.Resolver{Getenv: environment, Limiter: &limiter}
			m, name, err := r.Open(target)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(context.Background(), &llm.Request{Model: name, Messages: []*llm.Message{llm.UserText("hi")}})
			failure, ok := errors.AsType[*llm.Error](err)
			if !ok || failure.Class != llm.ClassThrottled || !failure.HasRetryAfter || failure.RetryAfter < time.Hour {
				t.Errorf("%s, run %d: %v", target, run+1, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s: the provider was asked %d times", target, n)
		}
	}
}
