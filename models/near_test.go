package models_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

func TestANameThatOnlyNearlyExistsNamesTheNearOne(t *testing.T) {
	r := models.Resolver{Getenv: env()}
	for target, near := range map[string]string{
		"anthropic/claude-sonnet-4.5":          "anthropic/claude-sonnet-4-5",
		"anthropic/Claude-Sonnet-4-5":          "anthropic/claude-sonnet-4-5",
		"anthropic/claude_sonnet_4_5":          "anthropic/claude-sonnet-4-5",
		"anthropic/claude-4.5-sonnet":          "anthropic/claude-sonnet-4-5",
		"anthropic/claude-sonet-4-5":           "anthropic/claude-sonnet-4-5",
		"anthropic/claude-sonnnet-4-5":         "anthropic/claude-sonnet-4-5",
		"anthropic/claude-sonnet-4-5 20250929": "anthropic/claude-sonnet-4-5-20250929",
		"anthropic/claude-ophus-4-1":           "anthropic/claude-opus-4-1",
		"openai/gtp-5":                         "openai/gpt-5",
		"openai/gpt5-mini":                     "openai/gpt-5-mini",
		"openai/gpt-5-mimi":                    "openai/gpt-5-mini",
		"openai-chat/gpt-4-1":                  "openai-chat/gpt-4.1",
		"google/gemini-2-5-pro":                "google/gemini-2.5-pro",
		"deepseek/deepseek_chat":               "deepseek/deepseek-chat",
	} {
		err := r.CheckName(target)
		if e, ok := errors.AsType[*models.NearNameError](err); !ok || e.Near != near || e.Name != target || !errors.Is(err, llm.ErrUnknownModel) || !strings.HasSuffix(err.Error(), "did you mean "+near+"?") {
			t.Errorf("%s: %v, want %s", target, err, near)
		}
	}
}

// The table is dated, and there are models that it cannot know.
func TestANameThatTheTableCannotKnowPasses(t *testing.T) {
	r := models.Resolver{Getenv: env()}
	for _, target := range []string{
		"anthropic/claude-sonnet-4-5",          // known
		"anthropic/claude-sonnet-4-7",          // newer
		"anthropic/claude-sonnet-5-4",          // other numbers
		"anthropic/claude-sonnet-4-5-20260101", // another day's
		"anthropic/claude-sonnet-4-5-latest",   // another word
		"anthropic/claude-sonnet",
		"openai/gpt-5o",
		"openai/gpt-6",
		"openai/gpt-5-2025-08-07",
		"openai/o5",
		"openai/ft:gpt-4o-mini-2024-07-18:acme::abc",
		"openai-chat/gpt-5.6-mini",
		"google/gemini-2.5-flash-preview-09-2025",
		"openrouter/anthropic/claude-sonnet-4-5", // a gateway's own names
		"groq/openai/gpt_oss-20b",
		"vllm/gtp-5", "ollama/qwen3:8b", "llamacpp/any", "scripted/gtp-5", "replay/k7x2", // they are in no list
	} {
		if err := r.CheckName(target); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	elsewhere := models.Resolver{
		Getenv: env("OPENAI_BASE_URL", "https://proxy.example/v1", "ANTHROPIC_BASE_URL", "http://127.0.0.1:4000"),
		Config: models.Config{
			Providers: map[string]models.Provider{"google": {BaseURL: "https://vertex.example"}, "acme": {BaseURL: "https://acme.example/v1"}},
			Models:    map[string]models.Override{"deepseek/deepseek_chat": {}},
		},
	}
	for _, target := range []string{
		"openai/gtp-5", "openai-chat/gtp-5", "anthropic/claude-sonnet-4.5", "google/gemini-2-5-pro", "acme/gtp-5",
		"deepseek/deepseek_chat", // its owner says that the name is meant
	} {
		if err := elsewhere.CheckName(target); err != nil {
			t.Errorf("%s elsewhere: %v", target, err)
		}
	}
	own := models.Resolver{Getenv: env("OPENAI_BASE_URL", "https://api.openai.com/v1/")}
	if own.CheckName("openai/gtp-5") == nil || own.CheckName("openai-chat/gtp-5") == nil {
		t.Error("the provider's own address, said in words, is taken for another")
	}
}
