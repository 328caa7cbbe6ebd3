package models_test

import (
	"errors"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

func TestAModelIsNamedByAStringWithItsKeyInTheEnvironment(t *testing.T) {
	address, seen := refusing(t)
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	t.Setenv("ANTHROPIC_BASE_URL", address)
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_API_KEY", "")
	m, err := models.Named("anthropic/claude-sonnet-4-5")
	if err != nil || m.Name != "anthropic/claude-sonnet-4-5" || m.Price == nil || m.Price.Output != 15 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := m.Client.Generate(t.Context(), &llm.Request{Model: "claude-sonnet-4-5", Messages: []*llm.Message{llm.UserText("hi")}}); err == nil {
		t.Fatal("the server refuses and the call went well")
	}
	if key := seen().Header.Get("X-Api-Key"); key != "secret" {
		t.Errorf("the provider got the key %q", key)
	}
	for name, want := range map[string]error{
		"google/gemini-2.5-pro": models.ErrNoKey, "acme/one": llm.ErrUnknownModel, "claude": llm.ErrUnknownModel,
	} {
		if m, err := models.Named(name); !errors.Is(err, want) || m.Client != nil {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	t.Setenv("ANTHROPIC_BASE_URL", "")
	if _, err := models.Named("anthropic/claude-sonnet-4.5"); !errors.Is(err, llm.ErrUnknownModel) {
		t.Errorf("a slip: %v", err)
	}
}
