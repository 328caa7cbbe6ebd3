package openaichat_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// A server says by which name it takes the cap. The next request, of any run of the
// process, has that name.
func TestTheNameOfTheCapIsLearntFromARefusal(t *testing.T) {
	const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	for name, c := range map[string]struct {
		profile string
		refuses []string
		says    string
		sent    []string
	}{
		"OpenAI's newer models": {"vllm", []string{"max_tokens"}, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, []string{"max_tokens", "max_completion_tokens", "max_completion_tokens"}},
		"an older server":       {"openai", []string{"max_completion_tokens"}, `{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens","type":"invalid_request_error","param":null,"code":null}}`, []string{"max_completion_tokens", "max_tokens", "max_tokens"}},
		"one that forbids more": {"openai", []string{"max_completion_tokens"}, `{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}`, []string{"max_completion_tokens", "max_tokens", "max_tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				for _, n := range []string{"max_tokens", "max_completion_tokens"} {
					if strings.Contains(string(body), `"`+n+`":`) {
						sent = append(sent, n)
					}
				}
				if strings.Contains(string(body), `"`+c.refuses[0]+`":`) {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, c.says)
					return
				}
				_, _ = io.WriteString(w, answer)
			}))
			t.Cleanup(srv.Close)
			profile, _ := openaichat.ProfileNamed(c.profile)
			m := openaichat.New(openaichat.Options{BaseURL: srv.URL, Profile: &profile})
			req := func() *llm.Request {
				return &llm.Request{Model: "gpt-5", MaxTokens: 100, Messages: []*llm.Message{llm.UserText("go")}}
			}
			_, err := m.Generate(t.Context(), req())
			if e, ok := errors.AsType[*llm.Error](err); !ok || !e.Adapted || e.Class != llm.ClassInvalid {
				t.Fatalf("the refusal is %+v", err)
			}
			for range 2 {
				if _, err := m.Generate(t.Context(), req()); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Join(sent, " ") != strings.Join(c.sent, " ") {
				t.Errorf("sent was %v, want %v", sent, c.sent)
			}
		})
	}
}

// A model that takes the cap by neither name is not asked for ever.
func TestACapThatIsRefusedByEitherNameIsAnError(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		name := "max_tokens"
		if strings.Contains(string(body), "max_completion_tokens") {
			name = "max_completion_tokens"
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: `+name+`","code":"unsupported_parameter"}}`)
	}))
	t.Cleanup(srv.Close)
	m := openaichat.New(openaichat.Options{BaseURL: srv.URL})
	for asked < 10 {
		_, err := m.Generate(t.Context(), &llm.Request{Model: "m", MaxTokens: 100, Messages: []*llm.Message{llm.UserText("go")}})
		if e, ok := errors.AsType[*llm.Error](err); !ok || !e.Adapted {
			break
		}
	}
	if asked > 3 {
		t.Errorf("asked %d times", asked)
	}
}
