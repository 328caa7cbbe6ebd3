package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyTextModelsWithAPlainPriceAreTaken(t *testing.T) {
	const text = `"modalities": {"output": ["text"]}, "limit": {"context": 1000, "output": 10}`
	data := `{
		"anthropic": {
			"b": {"cost": {"input": 2, "output": 8, "cache_read": 0.2, "cache_write": 2.5}, ` + text + `},
			"a": {"cost": {"input": 1, "output": 4, "tiers": [{"input": 2, "output": 8, "cache_read": 0.1, "tier": {"size": 500}}]}, ` + text + `,
				"tool_call": true, "reasoning": true, "structured_output": true},
			"no-price": {` + text + `},
			"image": {"cost": {"input": 1, "output": 4}, "modalities": {"output": ["text", "image"]}, "limit": {"context": 1000}},
			"text-embedding-1": {"cost": {"input": 1, "output": 0}, ` + text + `},
			"thinks-apart": {"cost": {"input": 1, "output": 4, "reasoning": 2}, ` + text + `}
		},
		"google": {
			"gemini-flash-latest": {"cost": {"input": 0.3, "output": 2.5}, ` + text + `},
			"gemini-2.5-flash": {"cost": {"input": 0.3, "output": 2.5}, ` + text + `}
		},
		"openai": {"gpt-5-chat-latest": {"cost": {"input": 1.25, "output": 10}, ` + text + `}},
		"somebody-else": {"c": {"cost": {"input": 1, "output": 1}, ` + text + `}}
	}`
	got, err := convert([]byte(data), "2026-07-02")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"date":"2026-07-02","models":{
"anthropic/a":{"price":{"input":1,"output":4,"cacheRead":1,"cacheWrite":1,"long":{"over":500,"input":2,"output":8,"cacheRead":0.1,"cacheWrite":2}},"context":1000,"output":10,"can":["tools","reasoning","schema"]},
"anthropic/b":{"price":{"input":2,"output":8,"cacheRead":0.2,"cacheWrite":2.5},"context":1000,"output":10},
"google/gemini-2.5-flash":{"price":{"input":0.3,"output":2.5,"cacheRead":0.3,"cacheWrite":0.3},"context":1000,"output":10},
"openai/gpt-5-chat-latest":{"price":{"input":1.25,"output":10,"cacheRead":1.25,"cacheWrite":1.25},"context":1000,"output":10}
}}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestTableIsWhatTheGeneratorMakes(t *testing.T) {
	data, err := os.ReadFile("../../../shared/fixtures/models/models.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the copy of models.dev is not beside this checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := convert(data, "2026-07-02")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../models/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("models/prices.json is not what the generator makes; run go generate ./models")
	}
	if len(got) > 200<<10 {
		t.Errorf("the table has %d bytes; it is part of the binary", len(got))
	}
}
