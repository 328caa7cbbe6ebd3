package models_test

import (
	"testing"

	"github.com/pawlrun/pawl/models"
)

func TestAbilitiesAreKnownOrNot(t *testing.T) {
	r := &models.Resolver{Config: models.Config{Models: map[string]models.Override{
		"house/coder":    {Can: []string{models.CanTools}},
		"house/silent":   {ContextWindow: 8000},
		"house/dumb":     {Can: []string{}},
		"ollama/llava":   {Can: []string{models.CanImages}},
		"openai/gpt-5":   {ContextWindow: 8000},
		"openai/gpt-4.1": {Can: []string{models.CanTools}},
	}}}
	for _, c := range []struct {
		target, ability string
		can, known      bool
	}{
		{"anthropic/claude-sonnet-4-5", models.CanImages, true, true},
		{"deepseek/deepseek-chat", models.CanImages, false, true},
		{"anthropic/claude-sonnet-4-5", models.CanSchema, true, true}, // the table says it of no model of Anthropic's, the wire does
		{"anthropic/claude-3-haiku-20240307", models.CanSchema, false, false},
		{"anthropic/no-such-model", models.CanSchema, false, false},
		{"openai/gpt-5", models.CanSchema, true, true},
		{"openai/gpt-4.1", models.CanImages, false, true}, // the owner's word counts before the table's
		{"openai/gpt-4.1", models.CanSchema, false, true},
		{"openai/no-such-model", models.CanImages, false, false},
		{"house/coder", models.CanTools, true, true},
		{"house/coder", models.CanImages, false, true},
		{"house/silent", models.CanImages, false, false},
		{"house/dumb", models.CanTools, false, true},
		{"ollama/llava", models.CanImages, true, true},
		{"ollama/other", models.CanImages, false, false},
		{"scripted/x.yaml", models.CanImages, false, false},
	} {
		if can, known := r.Can(c.target, c.ability); can != c.can || known != c.known {
			t.Errorf("%s, %s: can %t, known %t", c.target, c.ability, can, known)
		}
	}
}
