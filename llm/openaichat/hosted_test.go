package openaichat_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
)

// The tools that a service runs itself are asked for in its own words, and only
// where it has any; no recording of them is in the fixtures.
func TestToolsOfAServiceAreAskedForInItsOwnWords(t *testing.T) {
	own := []llm.ToolDef{{Name: "weather", Schema: []byte(`{"type":"object"}`)}}
	const weather = `{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}`
	for _, c := range []struct {
		profile string
		tool    string
		tools   []llm.ToolDef
		want    string
	}{
		{"openai", "web_search", nil, `"m","web_search_options":{},"messages":[`},
		{"openai", "web_search", own, `"m","tools":[` + weather + `],"web_search_options":{},"messages":[`},
		{"openrouter", "web_search", nil, `"m","tools":[{"type":"openrouter:web_search"}],"messages":[`},
		{"groq", "browser_search", own, `"m","tools":[` + weather + `,{"type":"browser_search"}],"messages":[`},
		{"openrouter", ` {"type": "openrouter:web_search", "max_results": 3} `, nil, `"m","tools":[{"type":"openrouter:web_search","max_results":3}],"messages":[`},
		{"deepseek", "web_search", nil, `"m","messages":[`},
	} {
		enc, err := newModel(profileOf(c.profile))("http://service.invalid", nil).(llm.Encoder).Encode(&llm.Request{
			Model: "m", Tools: c.tools, ProviderTools: []string{c.tool}, Messages: []*llm.Message{llm.UserText("hi")},
		})
		if err != nil {
			t.Errorf("%s, %s: %v", c.profile, c.tool, err)
			continue
		}
		if body := bytes.Join(enc.Segments, nil); !bytes.Contains(body, []byte(c.want)) {
			t.Errorf("%s, %s: %s\nis without %s", c.profile, c.tool, body, c.want)
		}
	}
	_, err := newModel(profileOf("groq"))("http://service.invalid", nil).(llm.Encoder).Encode(&llm.Request{Model: "m", ProviderTools: []string{"teleport"}})
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassInvalid || !strings.Contains(e.Message, "known are browser_search, code_interpreter") {
		t.Errorf("a tool that the service does not have: %v", err)
	}
}

// A service's text about the tools that it ran follows the answer. Most send none, and
// then the note is there all the same: the answer may contain text of another author.
func TestWhatAServiceRanStandsBehindItsAnswer(t *testing.T) {
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2}}` + "\n\n" + "data: [DONE]\n\n"
	text := `data: {"choices":[{"index":0,"delta":{"content":"Otters swim."}}]}` + "\n\n"
	for _, c := range []struct {
		name, profile string
		tools         []string
		stream        string
		want          llm.Parts
	}{
		{
			"the pages of an answer", "openai", []string{"web_search"},
			text + `data: {"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://o.example"}}]}}]}` + "\n\n" + end,
			llm.Parts{llm.Text{Text: "Otters swim."}, llm.Item{
				Type: "hosted_tools", Raw: []byte(`{"annotations":[{"type":"url_citation","url_citation":{"url":"https://o.example"}}]}`),
			}},
		},
		{
			"a call, and again with its output", "groq", []string{"code_interpreter"},
			`data: {"choices":[{"index":0,"delta":{"executed_tools":[{"index":0,"type":"python","arguments":"6*7"}]}}]}` + "\n\n" +
				`data: {"choices":[{"index":0,"delta":{"executed_tools":[{"index":0,"type":"python","arguments":"6*7","output":"42"}]}}]}` + "\n\n" + text + end,
			llm.Parts{llm.Text{Text: "Otters swim."}, llm.Item{
				Type: "hosted_tools", Raw: []byte(`{"executed_tools":[{"index":0,"type":"python","arguments":"6*7","output":"42"}]}`),
			}},
		},
		{"nothing is said", "openai", []string{"web_search"}, text + end, llm.Parts{llm.Text{Text: "Otters swim."}, llm.Item{Type: "hosted_tools", Raw: []byte(`{}`)}}},
		{"nothing was asked for", "openai", nil, text + end, llm.Parts{llm.Text{Text: "Otters swim."}}},
		{"nothing was answered", "openai", []string{"web_search"}, end, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(c.stream))
			}))
			t.Cleanup(s.Close)
			resp, err := newModel(profileOf(c.profile))(s.URL, s.Client()).Stream(t.Context(), &llm.Request{
				Model: "m", ProviderTools: c.tools, Messages: []*llm.Message{llm.UserText("Do otters swim?")},
			}, func(llm.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, resp.Parts); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
