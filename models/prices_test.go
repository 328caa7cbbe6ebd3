package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

func TestPricesAreFoundByTheExactNameOnly(t *testing.T) {
	r := models.Resolver{Getenv: env()}
	sonnet := &llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for target, want := range map[string]*llm.Price{
		"anthropic/claude-sonnet-4-5":          sonnet,
		"anthropic/claude-sonnet-4-5-20250929": sonnet,
		"anthropic/claude-sonnet-4-5-20250930": nil,
		"anthropic/claude-sonnet-4":            nil,
		"anthropic/Claude-Sonnet-4-5":          nil,
		"openai/claude-sonnet-4-5":             nil,
		"openai/gpt-5":                         {Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25},
		"openai-chat/gpt-5":                    {Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25},
		"scripted/a.yaml":                      {},
		"ollama/qwen3:8b":                      {},
		"replay/k7x2":                          {},
		"claude-sonnet-4-5":                    nil,
	} {
		if diff := cmp.Diff(want, r.Price(target)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

func TestCompatibleServiceIsPricedByItsAddress(t *testing.T) {
	at := func(base, name string) *llm.Price {
		r := models.Resolver{Getenv: env("OPENAI_BASE_URL", base)}
		return r.Price("openai-chat/" + name)
	}
	for _, own := range []string{"", "https://api.openai.com/v1", "https://api.openai.com/v1/"} {
		if p := at(own, "gpt-5"); p == nil || p.Output != 10 {
			t.Errorf("OpenAI's own address %q: %v", own, p)
		}
	}
	if p := at("https://api.groq.com/openai/v1", "openai/gpt-oss-20b"); p == nil || p.Output == 0 {
		t.Errorf("groq: %v", p)
	}
	if p := at("https://proxy.example/v1", "gpt-5"); p != nil {
		t.Errorf("an unknown service has a price: %v", p)
	}
	if p := at("http://127.0.0.1:11434/v1", "qwen3"); p == nil || *p != (llm.Price{}) {
		t.Errorf("ollama: %v", p)
	}
}

// The name of a program that anybody may run says nothing of who runs it.
func TestAModelCostsNothingOnlyWhereItsOwnersMayRunIt(t *testing.T) {
	free := &llm.Price{}
	at := func(provider, base string) *llm.Price {
		r := models.Resolver{Getenv: env(), Config: models.Config{Providers: map[string]models.Provider{provider: {BaseURL: base}}}}
		return r.Price(provider + "/openai/gpt-oss-20b")
	}
	for _, base := range []string{
		"http://localhost:8000/v1", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1", "http://10.1.2.3:8000/v1", "http://100.100.1.2/v1", "http://[fd12::1]/v1",
		"http://vllm:8000/v1", "http://host.docker.internal:8000/v1", "http://gpu.LAN/v1", "http://gpu.local./v1", "http://vllm.default.svc:8000/v1", "http://gpu.tail1234.ts.net/v1",
	} {
		for _, provider := range []string{"vllm", "ollama", "llamacpp"} {
			if diff := cmp.Diff(free, at(provider, base)); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s", provider, base, diff)
			}
		}
	}
	for _, base := range []string{"https://vllm.example.com/v1", "http://93.184.216.34:11434/v1", "https://localhost.example.com/v1", "https://gpu-local.net/v1"} {
		for _, provider := range []string{"vllm", "ollama", "llamacpp", "acme"} {
			if p := at(provider, base); p != nil {
				t.Errorf("%s at %s costs %+v", provider, base, p)
			}
		}
	}
	cloud := models.Resolver{Getenv: env("OLLAMA_HOST", "https://ollama.com", "OLLAMA_API_KEY", "k")}
	if p := cloud.Price("ollama/gpt-oss:120b"); p != nil {
		t.Errorf("ollama's cloud costs %+v", p)
	}
	if p := at("vllm", "https://api.groq.com/openai/v1"); p == nil || p.Output == 0 {
		t.Errorf("groq costs %+v", p)
	}
}

func TestLimitsOfAModelAreKnown(t *testing.T) {
	r := models.Resolver{}
	info, ok := r.Lookup("openai/gpt-4-turbo")
	if !ok || info.ContextWindow != 128_000 || info.MaxOutput != 4096 {
		t.Errorf("got %+v, %t", info, ok)
	}
}

func TestLongInputCostsItsOwnPrice(t *testing.T) {
	r := models.Resolver{}
	p := r.Price("openai/gpt-5.4")
	if p == nil {
		t.Fatal("no price")
	}
	below, above := p.Of(llm.Usage{Input: 272_000, Output: 1000}), p.Of(llm.Usage{Input: 272_001, Output: 1000})
	if below != (272_000*2.5+1000*15)/1e6 || above != (272_001*5+1000*22.5)/1e6 {
		t.Errorf("got %v and %v", below, above)
	}
}

// Prices must be plausible: nothing costs less than nothing, and reading from a cache
// costs no more than fresh input.
func TestTableHoldsOnlyUsableFigures(t *testing.T) {
	table, err := models.Known()
	if err != nil {
		t.Fatal(err)
	}
	if table.Date == "" || len(table.Models) < 100 {
		t.Fatalf("%d models of %q", len(table.Models), table.Date)
	}
	for name, m := range table.Models {
		p := m.Price
		if p.Input < 0 || p.Output < 0 || p.CacheWrite < 0 || p.CacheRead < 0 || p.CacheRead > p.Input || m.ContextWindow <= 0 {
			t.Errorf("%s: %+v", name, m)
		}
		if p.Long != nil && (p.Long.Over <= 0 || p.Long.Input < p.Input) {
			t.Errorf("%s: %+v", name, *p.Long)
		}
		if !strings.Contains(name, "/") {
			t.Errorf("%s has no provider", name)
		}
	}
}
