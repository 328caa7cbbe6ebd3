package llm_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Some gateways name the key that they refuse. What an error says goes into the
// journal and to the terminal, where no key may be.
func TestNoErrorRepeatsTheKey(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	wires := map[string]struct {
		model func(base string) llm.Streamer
		// midway is an error within a stream, %s its message.
		midway string
	}{
		"anthropic": {
			func(base string) llm.Streamer { return anthropic.New(anthropic.Options{BaseURL: base, APIKey: key}) },
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":%q}}\n\n",
		},
		"openai": {
			func(base string) llm.Streamer { return openai.New(openai.Options{BaseURL: base, APIKey: key}) },
			"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":%q}\n\n",
		},
		"openai-chat": {
			func(base string) llm.Streamer { return openaichat.New(openaichat.Options{BaseURL: base, APIKey: key}) },
			"data: {\"error\":{\"code\":\"server_error\",\"message\":%q}}\n\n",
		},
		"google": {
			func(base string) llm.Streamer { return gemini.New(gemini.Options{BaseURL: base, APIKey: key}) },
			"data: {\"error\":{\"code\":500,\"status\":\"INTERNAL\",\"message\":%q}}\n\n",
		},
	}
	for name, w := range wires {
		t.Run(name, func(t *testing.T) {
			for _, status := range []int{http.StatusUnauthorized, http.StatusOK} {
				s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if h := fmt.Sprint(r.Header); !strings.Contains(h, key) {
						t.Errorf("the request carries no key: %s", h)
					}
					message := "the key " + key + " is not known"
					rw.Header().Set("Request-Id", "of-"+key)
					rw.Header().Set("X-Request-Id", "of-"+key)
					message += strings.Repeat(".", 16<<10-len(message)-len(key)/2) + key // where it is cut
					if status != http.StatusOK {
						rw.WriteHeader(status)
						fmt.Fprintf(rw, `{"error":{"type":"authentication_error","message":%q}}`, message)
						return
					}
					rw.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprintf(rw, w.midway, message)
				}))
				req := &llm.Request{Model: "m", Messages: []*llm.Message{{Role: llm.RoleUser, Parts: llm.Parts{llm.Text{Text: "hi"}}}}}
				_, err := w.model(s.URL).Stream(t.Context(), req, func(llm.Delta) {})
				s.Close()
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || strings.Contains(e.Error()+e.Message+e.Code+e.RequestID, key[:8]) || !strings.Contains(e.Message, "is not known") {
					t.Errorf("HTTP %d: %v", status, err)
				}
			}
		})
	}
}

// Some gateways take their key in the address. The error of a request that did
// not get there names the address, and one that got there may repeat it.
func TestNoErrorRepeatsACredentialOfTheAddress(t *testing.T) {
	const token, key = "tok-very-secret-0123", "key+very/secret=4567"
	wires := map[string]func(base string) llm.Streamer{
		"anthropic":   func(base string) llm.Streamer { return anthropic.New(anthropic.Options{BaseURL: base}) },
		"openai":      func(base string) llm.Streamer { return openai.New(openai.Options{BaseURL: base}) },
		"openai-chat": func(base string) llm.Streamer { return openaichat.New(openaichat.Options{BaseURL: base}) },
		"google":      func(base string) llm.Streamer { return gemini.New(gemini.Options{BaseURL: base}) },
	}
	query := "/v1?version=2025-01-01&sig=" + url.QueryEscape(key)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(rw, r, "/v2?"+r.URL.RawQuery+"&ticket=very-new", http.StatusTemporaryRedirect)
			return
		}
		http.Error(rw, "no such key: "+user+r.RequestURI+" "+r.FormValue("sig"), http.StatusUnauthorized)
	}))
	defer s.Close()
	there := strings.TrimPrefix(s.URL, "http://")
	for name, model := range wires {
		for _, host := range []string{there, there + "/moved", "127.0.0.1:1", "not an address"} {
			req := &llm.Request{Model: "m", Messages: []*llm.Message{{Role: llm.RoleUser, Parts: llm.Parts{llm.Text{Text: "hi"}}}}}
			user := token
			if name == "google" {
				user += ":x-oauth-basic" // which is no password
			}
			_, err := model("http://"+user+"@"+host+query).Stream(t.Context(), req, func(llm.Delta) {})
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Message == "" {
				t.Fatalf("%s, %s: %v", name, host, err)
			}
			said := e.Error() + e.Message + fmt.Sprint(errors.Unwrap(e))
			if strings.Contains(said, "very") {
				t.Errorf("%s, %s: it is said %q", name, host, said)
			}
			if host == there && !strings.Contains(said, "2025-01-01") {
				t.Errorf("%s: what is no credential is missing from %q", name, said)
			}
		}
	}
}
