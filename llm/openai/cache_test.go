package openai_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

func bodyOf(t *testing.T, m *openai.Model, req *llm.Request) string {
	t.Helper()
	e, err := m.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.Join(e.Segments, nil))
}

// From GPT-5.6 on a breakpoint can be asked for, and only there.
func TestTheTaskIsPinnedWhereTheModelCanPin(t *testing.T) {
	const pin = `{"type":"input_text","text":"go","prompt_cache_breakpoint":{"mode":"explicit"}}]}`
	for _, tt := range []struct {
		model, base string
		cache       llm.Caching
		pinned      bool
	}{
		{"gpt-5.6", "", "", true},
		{"gpt-5.6", "", llm.CacheLong, true},
		{"gpt-5.6", "", llm.CacheOff, false},
		{"gpt-5.5", "", "", false},
		{"gpt-5.6", "https://gateway.example/v1", "", false},
	} {
		m := openai.New(openai.Options{BaseURL: tt.base})
		req := &llm.Request{Model: tt.model, CacheKey: "run", Cache: tt.cache, Messages: []*llm.Message{llm.UserText("go")}, Memo: new(llm.Memo)}
		for n := range 3 {
			got := bodyOf(t, m, req)
			if strings.Contains(got, pin) != tt.pinned || strings.Count(got, "prompt_cache_breakpoint") > 1 {
				t.Errorf("%+v, request %d: %s", tt, n, got)
			}
			req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
				&llm.Message{Role: llm.RoleAssistant, Parts: llm.Parts{llm.Text{Text: "hm"}}}, llm.UserText("more"))
		}
	}
}

func TestACacheThatIsOffIsNotAskedFor(t *testing.T) {
	for model, want := range map[string]bool{"gpt-5": false, "gpt-5.6": true} {
		got := bodyOf(t, openai.New(openai.Options{}), &llm.Request{Model: model, CacheKey: "run", Cache: llm.CacheOff})
		if strings.Contains(got, "prompt_cache_key") {
			t.Errorf("%s: %s", model, got)
		}
		if strings.Contains(got, `"prompt_cache_options":{"mode":"explicit"}`) != want {
			t.Errorf("%s: %s", model, got)
		}
	}
}
