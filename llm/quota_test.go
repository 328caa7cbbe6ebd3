package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Gateways put OpenAI's errors on every wire. A quota that is used up is not
// waited for, whatever the status says.
func TestInsufficientQuotaIsQuotaOnEveryWire(t *testing.T) {
	const atTheTop = "at the top"
	bodies := map[string]string{
		"type and code":  `{"error":{"message":"You exceeded your current plan.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
		"type alone":     `{"error":{"message":"no more","type":"insufficient_quota","code":null}}`,
		"code alone":     `{"error":{"message":"no more","type":"invalid_request_error","code":"insufficient_quota"}}`,
		"a numeric code": `{"error":{"message":"no more","type":"insufficient_quota","code":429}}`,
		"as Google":      `{"error":{"message":"no more","status":"insufficient_quota","code":429}}`,
		"as Anthropic":   `{"type":"error","error":{"type":"insufficient_quota","message":"no more"}}`,
		atTheTop:         `{"code":"insufficient_quota","message":"no more"}`,
	}
	// What a request held is no word of the service's.
	const quoted = `{"type":"error","error":{"type":"rate_limit_error","status":"RESOURCE_EXHAUSTED","message":"slow down; you sent {\"code\": \"insufficient_quota\"}"}}`
	for name, model := range map[string]func(base string) llm.Streamer{
		"anthropic":   func(base string) llm.Streamer { return anthropic.New(anthropic.Options{BaseURL: base}) },
		"openai":      func(base string) llm.Streamer { return openai.New(openai.Options{BaseURL: base}) },
		"openai-chat": func(base string) llm.Streamer { return openaichat.New(openaichat.Options{BaseURL: base}) },
		"google":      func(base string) llm.Streamer { return gemini.New(gemini.Options{BaseURL: base}) },
	} {
		said := func(status int, body string) *llm.Error {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}))
			defer srv.Close()
			_, err := model(srv.URL).Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
			if err == nil {
				t.Fatalf("%s: no error of %s", name, body)
			}
			return llm.AsError(err)
		}
		for shape, body := range bodies {
			for _, status := range []int{http.StatusTooManyRequests, http.StatusForbidden, http.StatusBadRequest, http.StatusInternalServerError} {
				if e := said(status, body); e.Class != llm.ClassQuota {
					t.Errorf("%s, %s, HTTP %d: %v", name, shape, status, e)
				}
			}
			if shape == atTheTop {
				continue // only a status makes an error of it
			}
			if e := said(http.StatusOK, body); e.Class != llm.ClassQuota {
				t.Errorf("%s, %s, in place of an answer: %v", name, shape, e)
			}
			if e := said(http.StatusOK, "event: error\ndata: "+body+"\n\n"); e.Class != llm.ClassQuota {
				t.Errorf("%s, %s, within a stream: %v", name, shape, e)
			}
		}
		for _, body := range []string{quoted, fmt.Sprintf(`{"error":%s}`, quoted)} {
			if e := said(http.StatusTooManyRequests, body); e.Class != llm.ClassThrottled {
				t.Errorf("%s, in what the service quotes: %v", name, e)
			}
		}
	}
}
