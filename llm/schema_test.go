package llm_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

const (
	closed = `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b","a"],"additionalProperties":false}`
	loose  = `{"type":"object","properties":{"b":{"type":"string","minLength":2}},"required":["b"]}`
	open   = `{"type":"object","additionalProperties":{"type":"string"}}`
)

// asking is a request for an answer by schema.
func asking(model, schema string, tools bool) *llm.Request {
	req := &llm.Request{Model: model, System: "Judge.", Messages: []*llm.Message{llm.UserText("go")}, Schema: json.RawMessage(schema)}
	if tools {
		req.Tools = []llm.ToolDef{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}}
	}
	return req
}

// Where a service holds its models to a schema it is asked to, in its own
// words; where it does not, or not beside tools, the schema is in the system
// text. It is always the one or the other.
func TestASchemaReachesEveryProviderInTheWayThatItTakes(t *testing.T) {
	chat := func(profile string) llm.Encoder {
		p, ok := openaichat.ProfileNamed(profile)
		if !ok {
			t.Fatalf("there is no profile %s", profile)
		}
		return openaichat.New(openaichat.Options{Profile: &p})
	}
	openAI := func(strict bool, schema string) string {
		return `"json_schema","name":"answer","strict":` + map[bool]string{true: "true", false: "false"}[strict] + `,"schema":` + schema
	}
	response := func(strict bool, schema string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":` + map[bool]string{true: "true", false: "false"}[strict] + `,"schema":` + schema
	}
	claude, google, responses := llm.Encoder(anthropic.New(anthropic.Options{})), llm.Encoder(gemini.New(gemini.Options{})), llm.Encoder(openai.New(openai.Options{}))
	const prompted = "matches this JSON schema"
	for _, c := range []struct {
		name  string
		model llm.Encoder
		req   *llm.Request
		want  string
	}{
		{"anthropic", claude, asking("claude-sonnet-4-5", closed, true), `"output_config":{"format":{"type":"json_schema","schema":` +
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b","a"],"additionalProperties":false}`},
		{"anthropic, closed and with bounds in words", claude, asking("claude-sonnet-4-5", loose, false),
			`"schema":{"type":"object","properties":{"b":{"type":"string","description":"(minLength: 2)"}},"required":["b"],"additionalProperties":false}`},
		{"anthropic, members of any name", claude, asking("claude-sonnet-4-5", open, false), prompted},
		{"anthropic, an older model", claude, asking("claude-3-5-haiku-latest", closed, false), prompted},
		{"openai", responses, asking("gpt-5", closed, true), openAI(true, closed)},
		{"openai, not of the strict kind", responses, asking("gpt-5", loose, true), openAI(false, loose)},
		{"openai, an older model", responses, asking("gpt-4-turbo", closed, false), prompted},
		{"gemini", google, asking("gemini-2.5-pro", loose, false), `"responseMimeType":"application/json","responseJsonSchema":` + loose},
		{"gemini, beside tools", google, asking("gemini-3-pro", loose, true), `"responseJsonSchema":` + loose},
		{"gemini, an older model beside tools", google, asking("gemini-2.5-pro", loose, true), prompted},
		{"chat: openai", chat("openai"), asking("gpt-5", closed, true), response(true, closed)},
		{"chat: openai, loose", chat("openai"), asking("gpt-5", loose, true), response(false, loose)},
		{"chat: mistral", chat("mistral"), asking("m", closed, true), response(true, closed)},
		{"chat: xai", chat("xai"), asking("m", closed, true), response(true, closed)},
		{"chat: openrouter", chat("openrouter"), asking("m", closed, true), response(true, closed)},
		{"chat: deepseek", chat("deepseek"), asking("m", closed, false), `"response_format":{"type":"json_object"}`},
		{"chat: deepseek, in words", chat("deepseek"), asking("m", closed, false), prompted},
		{"chat: deepseek, beside tools", chat("deepseek"), asking("m", closed, true), prompted},
		{"chat: zai", chat("zai"), asking("m", closed, false), `"response_format":{"type":"json_object"}`},
		{"chat: groq", chat("groq"), asking("m", closed, false), response(true, closed)},
		{"chat: groq, beside tools", chat("groq"), asking("m", closed, true), prompted},
		{"chat: ollama", chat("ollama"), asking("m", closed, false), response(true, closed)},
		{"chat: ollama, beside tools", chat("ollama"), asking("m", closed, true), prompted},
		{"chat: llama.cpp", chat("llamacpp"), asking("m", closed, false), response(true, closed)},
		{"chat: llama.cpp, beside tools", chat("llamacpp"), asking("m", closed, true), prompted},
		{"chat: vllm", chat("vllm"), asking("m", closed, false), response(true, closed)},
		{"chat: vllm, beside tools", chat("vllm"), asking("m", closed, true), prompted},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := encoded(t, c.model, c.req)
			if !strings.Contains(body, c.want) {
				t.Errorf("the request lacks %s:\n%s", c.want, body)
			}
			inWords := strings.Contains(body, prompted)
			if held := strings.Contains(body, `"json_schema"`) || strings.Contains(body, `"responseJsonSchema"`); held == inWords {
				t.Errorf("held to the schema %t, told of it %t:\n%s", held, inWords, body)
			}
			known := *c.req
			known.SchemaInPrompt = true
			if body := encoded(t, c.model, &known); !strings.Contains(body, prompted) || strings.Contains(body, `"json_schema"`) {
				t.Errorf("a model that is known not to answer by schema is asked to:\n%s", body)
			}
		})
	}
}

// encoded is the body of a request, the same with a memo and without.
func encoded(t *testing.T, m llm.Encoder, req *llm.Request) string {
	t.Helper()
	cold, err := m.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Join(cold.Segments, nil)
	memo := *req
	memo.Memo = new(llm.Memo)
	plain := memo
	plain.Schema = nil
	if _, err := m.Encode(&plain); err != nil {
		t.Fatal(err)
	}
	warm, err := m.Encode(&memo)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(body), string(bytes.Join(warm.Segments, nil))); diff != "" {
		t.Errorf("the memo changes the bytes:\n%s", diff)
	}
	if !json.Valid(body) {
		t.Errorf("the request is no JSON: %s", body)
	}
	return string(body)
}
