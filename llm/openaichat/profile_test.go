package openaichat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/wiregate"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

var update = flag.Bool("update", false, "write the golden files anew")

func profileOf(service string) openaichat.Profile {
	if profile, ok := openaichat.ProfileNamed(service); ok {
		return profile
	}
	return openaichat.ProfileFor("")
}

func newModel(profile openaichat.Profile) func(string, *http.Client) llm.Streamer {
	return func(base string, client *http.Client) llm.Streamer {
		return openaichat.New(openaichat.Options{APIKey: "k", BaseURL: base + "/v1", HTTP: client, Profile: &profile})
	}
}

// described are the services of which the fixtures have no recording: what they
// send is written down from their documentation, in testdata; see the profiles.
var described = []string{"vercel", "vllm", "xai"}

// unrecorded are their streams, by the file.
var unrecorded = map[string]string{"vllm": "vllm", "vllm-0.11": "vllm", "vllm-0.10": "vllm", "xai": "xai", "vercel": "vercel"}

func TestEveryNamedServiceHasTrafficUnderItsProfile(t *testing.T) {
	root, ok := wiregate.Fixtures()
	if !ok {
		t.Skip("no fixtures: ../shared/fixtures/wire is not beside this checkout")
	}
	recorded := map[string]int{}
	paths, _ := filepath.Glob(filepath.Join(root, "wire*", "*", "meta.json"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var s struct{ API, Provider string }
		if err = errors.Join(err, json.Unmarshal(text, &s)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if s.API == "openai-chat" {
			recorded[s.Provider]++
		}
	}
	for _, name := range openaichat.ProfileNames() {
		if recorded[name] == 0 && !slices.Contains(described, name) {
			t.Errorf("no recording and no description of %s", name)
		}
	}
}

// What each service is sent: a question with everything in it, and what follows
// an answer with reasoning and a call.
func TestRequestsAreInTheHabitOfEachService(t *testing.T) {
	var b bytes.Buffer
	for _, name := range openaichat.ProfileNames() {
		profile, _ := openaichat.ProfileNamed(name)
		m := openaichat.New(openaichat.Options{Profile: &profile, Provider: name})
		enc, err := m.Encode(&llm.Request{
			Model: "m", System: "Be brief.", MaxTokens: 100, CacheKey: "run", Schema: json.RawMessage(`{"type":"object"}`),
			Tools: []llm.ToolDef{{Name: "fs.read", Description: "Read.", Schema: json.RawMessage(`{"type":"object"}`)}},
			Messages: []*llm.Message{
				llm.UserText("go"),
				{Role: llm.RoleAssistant, Origin: name + "/m", Parts: llm.Parts{
					llm.Reasoning{Text: "hm", Raw: json.RawMessage(`[{"type":"reasoning.text","text":"hm","signature":"s"}]`)},
					llm.ToolCall{CallID: "run-1-1", ProviderID: "call_1", Name: "fs.read", Args: json.RawMessage(`{}`)},
				}},
				{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "run-1-1", ProviderID: "call_1", Name: "fs.read", Output: "text"}}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if err := json.Indent(&body, bytes.Join(enc.Segments, nil), "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, &body)
	}
	golden.File(t, "testdata/profiles.golden", b.String(), *update)
}

func TestUnrecordedServicesAreReadByTheirDocumentation(t *testing.T) {
	for file, name := range unrecorded {
		t.Run(file, func(t *testing.T) {
			stream, err := os.ReadFile("testdata/" + file + ".sse")
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write(stream)
			}))
			t.Cleanup(s.Close)
			resp, err := newModel(profileOf(name))(s.URL, s.Client()).Stream(t.Context(), &llm.Request{
				Model: "m", Messages: []*llm.Message{llm.UserText("weather?")}, Tools: []llm.ToolDef{{Name: "weather"}},
			}, func(llm.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			calls := resp.Parts.ToolCalls()
			thought, _ := resp.Parts[0].(llm.Reasoning)
			if len(calls) != 1 || calls[0].Name != "weather" || string(calls[0].Args) != `{"city":"Bergen"}` || thought.Text != "Rain, surely." ||
				resp.Finish != llm.FinishTool || resp.Usage.Input != 80 || resp.Usage.Output != 30 || resp.Usage.Reasoning != 12 {
				t.Errorf("%+v", resp)
			}
		})
	}
}

// A thought comes before what was thought of, in whole answers, too, in which
// xAI has it behind the content.
func TestAThoughtComesFirstInAWholeAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"Rain.","reasoning_content":"It is Bergen.","refusal":null},` +
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":5}}}`))
	}))
	t.Cleanup(s.Close)
	var heard []llm.Delta
	resp, err := newModel(profileOf("xai"))(s.URL, s.Client()).Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("weather?")}}, func(d llm.Delta) {
		heard = append(heard, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(llm.Parts{llm.Reasoning{Text: "It is Bergen."}, llm.Text{Text: "Rain."}}, resp.Parts); diff != "" || resp.Usage.Output != 7 {
		t.Errorf("usage %+v, parts (-want +got):\n%s", resp.Usage, diff)
	}
	want := []llm.Delta{{Kind: llm.DeltaReasoning, Text: "It is Bergen."}, {Kind: llm.DeltaText, Index: 1, Text: "Rain."}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

// The bodies are those that the services document, or were seen to send.
func TestRefusalsOfEachServiceAreClassified(t *testing.T) {
	for _, c := range []struct {
		service string
		status  int
		body    string
		class   llm.Class
		message string
	}{
		{"xai", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx***yy."}`, llm.ClassAuth, "Incorrect API key provided: xx***yy."},
		{"vllm", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`,
			llm.ClassContextOverflow, "This model's maximum context length is 4096 tokens."},
		{"vllm", 404, `{"error":{"message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}}`, llm.ClassInvalid, "The model x does not exist."},
		{"llamacpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`,
			llm.ClassContextOverflow, "the request exceeds the available context size"},
		{"llamacpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.ClassOverloaded, "Loading model"},
		{"ollama", 404, `{"error":{"message":"model 'x' not found","type":"not_found_error","param":null,"code":null}}`, llm.ClassInvalid, "model 'x' not found"},
		{"mistral", 401, `{"detail":"Unauthorized"}`, llm.ClassAuth, "Unauthorized"},
		{"mistral", 429, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","code":"1300"}`, llm.ClassThrottled, "Requests rate limit exceeded"},
		{"deepseek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, llm.ClassQuota, "Insufficient Balance"},
		{"groq", 429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, llm.ClassThrottled, "Rate limit reached"},
		{"openrouter", 402, `{"error":{"message":"This request requires more credits","code":402}}`, llm.ClassQuota, "This request requires more credits"},
	} {
		t.Run(fmt.Sprint(c.service, " ", c.status), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(s.Close)
			_, err := newModel(profileOf(c.service))(s.URL, s.Client()).Generate(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("hi")}})
			if e := llm.AsError(err); e.Class != c.class || e.Message != c.message || e.Status != c.status {
				t.Errorf("%+v", e)
			}
		})
	}
}

// An id that another provider gave is one that this service takes, the same for
// the call and for its result, and of two calls it is not the same.
func TestIDsOfCallsAreThoseThatTheServiceTakes(t *testing.T) {
	for name, want := range map[string]string{"mistral": "^[a-zA-Z0-9]{9}$", "openai": "^.{1,40}$"} {
		profile, _ := openaichat.ProfileNamed(name)
		seen := map[string]bool{}
		for _, id := range []string{"toolu_01A09q90qw90lq917835lq9", "functions.look:0", "a1B2c3D4e", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
			enc, err := openaichat.New(openaichat.Options{Profile: &profile}).Encode(&llm.Request{Model: "m", Messages: []*llm.Message{
				llm.UserText("go"),
				{Role: llm.RoleAssistant, Parts: llm.Parts{llm.ToolCall{CallID: "run-1-1", ProviderID: id, Name: "look", Args: json.RawMessage(`{}`)}}},
				{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: "run-1-1", ProviderID: id, Name: "look", Output: "ok"}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Messages []struct {
					ToolCalls  []struct{ ID string } `json:"tool_calls"`
					ToolCallID string                `json:"tool_call_id"`
				}
			}
			if err := json.Unmarshal(bytes.Join(enc.Segments, nil), &body); err != nil {
				t.Fatal(err)
			}
			got := body.Messages[1].ToolCalls[0].ID
			if !regexp.MustCompile(want).MatchString(got) || got != body.Messages[2].ToolCallID || seen[got] {
				t.Errorf("%s: %s becomes %s for the call and %s for its result", name, id, got, body.Messages[2].ToolCallID)
			}
			if regexp.MustCompile(want).MatchString(id) && got != id {
				t.Errorf("%s: %s becomes %s for no reason", name, id, got)
			}
			seen[got] = true
		}
	}
}
