package spec_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/golden"
)

var known = spec.ConfigOptions{Providers: []string{"anthropic", "groq", "mistral"}, Profiles: []string{"llamacpp", "vllm"}, Abilities: []string{"tools", "reasoning", "images"}}

func TestConfigFileIsReadWhole(t *testing.T) {
	c, err := spec.ReadConfig("testdata/config/good.yaml", known)
	if err != nil {
		t.Fatal(err)
	}
	price := &spec.ConfigPrice{Input: new(2.5), Output: new(12.5), CacheRead: new(0.25), CacheWrite: new(3.0)}
	want := &spec.Config{
		Providers: map[string]spec.ConfigProvider{
			"groq": {APIKeyEnv: "TEAM_GROQ_KEY"},
			"anthropic": {
				BaseURL: "https://gateway.example/anthropic", Proxy: "http://proxy.example:3128",
				Headers: map[string]string{"X-Team": "agents", "Authorization": "Bearer ${GATEWAY_TOKEN}"},
			},
			"house-vllm": {BaseURL: "http://10.0.0.7:8000/v1", Profile: "vllm"},
		},
		Models: map[string]spec.ConfigModel{
			"house-vllm/qwen3-coder":      {ContextWindow: new(131072), MaxOutput: new(16384), Can: spec.Names{"tools", "reasoning"}, Price: &spec.ConfigPrice{Input: new(0.0), Output: new(0.0)}},
			"anthropic/claude-sonnet-4-5": {Price: price},
		},
		Classes: map[string]string{"coding-frontier": "anthropic/claude-sonnet-4-5", "cheap": "house-vllm/qwen3-coder"},
		Roles:   spec.ConfigRoles{Architect: "anthropic/claude-opus-4-5", Editor: "house-vllm/qwen3-coder", Subagent: "groq/openai/gpt-oss-20b"},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestBadConfigTellsEveryProblemWithItsPlaceAndNoSecret(t *testing.T) {
	_, err := spec.ReadConfig("testdata/config/bad.yaml", known)
	var problems decode.Errors
	if !errors.As(err, &problems) {
		t.Fatalf("accepted: %v", err)
	}
	golden.File(t, "testdata/config/bad.yaml.golden", err.Error()+"\n", *update)
	for _, secret := range []string{"gsk_live", "mk-0123", "hunter2", "k-0123"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the errors show the secret %s…", secret)
		}
	}
}

func TestClassesAndRolesOfTheConfigFillTheChain(t *testing.T) {
	o := spec.Options{
		Classes: map[string]string{"coding-frontier": "x/frontier", "cheap": "x/cheap"},
		Roles:   map[string]string{"editor": "x/house-editor"},
	}
	for policy, want := range map[string]string{
		"primary: {capability_class: coding-frontier}, fallbacks: [{capability_class: cheap}]": "x/frontier x/cheap",
		"primary: x/p, role: editor": "x/p x/house-editor",
		"role: editor":               "x/house-editor",
		"primary: x/p, role: editor, roles: {editor: x/own}":            "x/p x/own",
		"primary: {capability_class: cheap}, fallbacks: [x/cheap, y/z]": "x/cheap y/z",
	} {
		a, err := spec.ParseAgent("a.yaml", []byte("identity: {name: x}\nmodel_policy: {"+policy+"}\n"), o)
		if err != nil {
			t.Errorf("%s: %v", policy, err)
			continue
		}
		if got := strings.Join(a.Chain(), " "); got != want {
			t.Errorf("%s: chain is %s, want %s", policy, got, want)
		}
	}
	for policy, want := range map[string]string{
		"primary: {capability_class: fast}": `3:44: model_policy.primary.capability_class: no config file defines the class "fast" (expected one of cheap, coding-frontier)`,
		"primary: x/p, role: architect":     `"architect" has no model there`,
	} {
		_, err := spec.ParseAgent("a.yaml", []byte("identity: {name: x}\n\nmodel_policy: {"+policy+"}\n"), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	o.CheckModel = func(_, name string) error { return errors.New(name + " is gone") }
	_, err := spec.ParseAgent("a.yaml", []byte("identity: {name: x}\nmodel_policy: {primary: {capability_class: cheap}}\n"), o)
	if err == nil || !strings.Contains(err.Error(), "x/cheap is gone") {
		t.Errorf("a class whose model cannot be called: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	for _, path := range []string{"testdata/config/good.yaml", "testdata/config/bad.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := spec.ParseConfig("c.yaml", data, known)
		if (c == nil) == (err == nil) {
			t.Errorf("got %v and %v", c, err)
		}
	})
}
