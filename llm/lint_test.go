package llm_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// An adapter that is handed a broken history, by a program that runs its own
// loop, sends nothing and names the rule; what is appended to a good one is
// looked at, though the rest is not read again.
func TestABrokenHistoryIsRefusedBeforeItIsSent(t *testing.T) {
	sent := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	t.Cleanup(s.Close)
	call := func(id string) *llm.Message {
		return &llm.Message{Role: llm.RoleAssistant, Parts: llm.Parts{llm.ToolCall{CallID: id, ProviderID: id, Name: "look", Args: json.RawMessage(`{}`)}}}
	}
	result := func(id string) *llm.Message {
		return &llm.Message{Role: llm.RoleTool, Parts: llm.Parts{llm.ToolResult{CallID: id, ProviderID: id, Name: "look", Output: "ok"}}}
	}
	good := []*llm.Message{llm.UserText("go"), call("call_a1b2c3d4e5"), result("call_a1b2c3d4e5")}
	for name, m := range map[string]interface {
		llm.Model
		llm.Encoder
	}{
		"anthropic":   anthropic.New(anthropic.Options{BaseURL: s.URL}),
		"openai":      openai.New(openai.Options{BaseURL: s.URL}),
		"openai-chat": openaichat.New(openaichat.Options{BaseURL: s.URL}),
		"google":      gemini.New(gemini.Options{BaseURL: s.URL}),
	} {
		t.Run(name, func(t *testing.T) {
			memo := new(llm.Memo)
			encode := func(messages []*llm.Message) error {
				_, err := m.Encode(&llm.Request{Model: "m", Messages: messages, Memo: memo})
				return err
			}
			if err := encode(good); err != nil {
				t.Fatal(err)
			}
			orphan := append(good[:len(good):len(good)], call("call_b1b2c3d4e5"), llm.UserText("never mind"))
			late := append(good[:len(good):len(good)], llm.UserText("wait"), result("call_a1b2c3d4e5"))
			changed := []*llm.Message{good[0], good[1], llm.UserText("never mind")}
			for i, messages := range [][]*llm.Message{orphan, late, changed, good[1:2]} {
				err := encode(messages)
				e, _ := errors.AsType[*llm.Error](err)
				v, _ := errors.AsType[*conform.Violation](err)
				if e == nil || e.Class != llm.ClassInvalid || v == nil || string(v.Wire) != name {
					t.Errorf("history %d: %v", i, err)
				}
				if _, err := m.Generate(t.Context(), &llm.Request{Model: "m", Messages: messages}); err == nil {
					t.Errorf("history %d was sent", i)
				}
			}
			own := append(slices.Clone(good), call("call_d1b2c3d4e5"), result("call_d1b2c3d4e5"))
			if err := encode(own); err != nil {
				t.Fatal(err)
			}
			if own[3] = llm.UserText("never mind"); encode(own) == nil {
				t.Error("what was changed in the very list is not looked at")
			}
			longer := append(good[:len(good):len(good)], call("call_c1b2c3d4e5"), result("call_c1b2c3d4e5"))
			for _, messages := range [][]*llm.Message{longer, good, longer} {
				if err := encode(messages); err != nil {
					t.Errorf("a good history of %d: %v", len(messages), err)
				}
			}
		})
	}
	if sent != 0 {
		t.Errorf("%d requests were sent", sent)
	}
}
