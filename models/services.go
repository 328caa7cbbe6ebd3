package models

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/pawlrun/pawl/llm/openaichat"
)

// service is how a provider is reached.
type service struct {
	// wire is what it speaks.
	wire *wire
	// baseURL is the address; empty means the wire's own default. Where
	// baseEnv is set, that variable replaces it, read as address says.
	baseURL, baseEnv string
	address          func(string) string
	// keys are the variables that may hold the key, the first one that is set
	// counts; optional says that it also works without.
	keys     []string
	optional bool
	// elsewhere says that at another address than the wire's own it is whatever
	// server is compatible: that needs no key as a rule, and its address says what
	// it costs.
	elsewhere bool
	// local says that it is run by its users as a rule, who pay nothing per token
	// in their own network.
	local   bool
	profile string
	// telemetry is its name in OpenTelemetry's conventions, where that is another.
	telemetry string
	// custom says that only the config file knows it.
	custom  bool
	headers map[string]string
	proxy   string
}

// services are the providers that are known by name, with the addresses and
// the variables that their own documentation gives. How a compatible service
// differs from OpenAI's own is in its profile ([openaichat.Profile]).
var services = map[string]service{
	"anthropic":   {wire: messages, baseEnv: "ANTHROPIC_BASE_URL", keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}},
	"openai":      {wire: responses, baseEnv: "OPENAI_BASE_URL", keys: []string{"OPENAI_API_KEY"}},
	"openai-chat": {wire: chat, baseEnv: "OPENAI_BASE_URL", keys: []string{"OPENAI_API_KEY"}, elsewhere: true, telemetry: "openai"},
	"google":      {wire: generateContent, baseEnv: "GOOGLE_GEMINI_BASE_URL", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, telemetry: "gcp.gemini"},
	"deepseek":    {wire: chat, baseURL: "https://api.deepseek.com", keys: []string{"DEEPSEEK_API_KEY"}, profile: "deepseek"},
	"groq":        {wire: chat, baseURL: "https://api.groq.com/openai/v1", keys: []string{"GROQ_API_KEY"}, profile: "groq"},
	"mistral":     {wire: chat, baseURL: "https://api.mistral.ai/v1", keys: []string{"MISTRAL_API_KEY"}, profile: "mistral", telemetry: "mistral_ai"},
	"openrouter":  {wire: chat, baseURL: "https://openrouter.ai/api/v1", keys: []string{"OPENROUTER_API_KEY"}, profile: "openrouter"},
	"xai":         {wire: chat, baseURL: "https://api.x.ai/v1", keys: []string{"XAI_API_KEY"}, profile: "xai", telemetry: "x_ai"},
	"zai":         {wire: chat, baseURL: "https://api.z.ai/api/paas/v4", keys: []string{"ZAI_API_KEY"}, profile: "zai"},
	"llamacpp":    {wire: chat, baseURL: "http://127.0.0.1:8080/v1", keys: []string{"LLAMA_API_KEY"}, optional: true, local: true, profile: "llamacpp"},
	"ollama":      {wire: chat, baseEnv: "OLLAMA_HOST", address: ollamaURL, keys: []string{"OLLAMA_API_KEY"}, optional: true, local: true, profile: "ollama"},
	"vllm":        {wire: chat, baseURL: "http://127.0.0.1:8000/v1", keys: []string{"VLLM_API_KEY"}, optional: true, local: true, profile: "vllm"},
}

// TelemetryName is what OpenTelemetry's conventions call a provider.
func TelemetryName(provider string) string { return cmp.Or(services[provider].telemetry, provider) }

// KnownProviders lists the providers that are known by name.
func KnownProviders() []string { return slices.Sorted(maps.Keys(services)) }

// providerNames lists the providers that can be named: the known ones and those of
// the config.
func (r *Resolver) providerNames() []string {
	names := KnownProviders()
	for name := range r.Config.Providers {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// service lays the config over what is known of a provider. What the config
// says of it counts before the variables that other tools read too.
func (r *Resolver) service(name string) (service, bool) {
	s, known := services[name]
	p, given := r.Config.Providers[name]
	if !known && !given {
		return s, false
	}
	if !known {
		s = service{wire: chat, custom: true, optional: p.APIKeyEnv == ""}
	}
	s.baseURL = r.address(s, p.BaseURL)
	if p.BaseURL != "" {
		s.baseEnv = "" // it has no say
	}
	if p.APIKeyEnv != "" {
		s.keys, s.optional = []string{p.APIKeyEnv}, false
	} else if s.elsewhere {
		s.optional = s.baseURL != ""
	}
	if p.Profile != "" {
		s.profile = p.Profile
	}
	s.headers, s.proxy = p.Headers, p.Proxy
	return s, true
}

func (r *Resolver) address(s service, configured string) string {
	switch {
	case configured != "":
		return configured
	case s.address != nil:
		return s.address(r.env(s.baseEnv))
	case s.baseEnv != "":
		return r.env(s.baseEnv)
	}
	return s.baseURL
}

// checkAddress refuses an address to which no request can be sent, before a run
// begins. It may hold a password, so it is not repeated.
func (s service) checkAddress() error {
	if s.baseURL == "" {
		return nil
	}
	if u, err := url.Parse(s.baseURL); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		return nil
	}
	return fmt.Errorf("%s is no address such as https://api.example.com", cmp.Or(s.baseEnv, "base_url"))
}

// RunsOwnTools reports whether a target's provider can run tools on its own side;
// few of the compatible services do.
func (r *Resolver) RunsOwnTools(target string) bool {
	s, ok := r.service(providerOf(target))
	return ok && (s.wire != chat || len(s.habits().Hosted) > 0)
}

// habits are those of a compatible service: the ones that it is known for by its
// name, else by its address.
func (s service) habits() openaichat.Profile {
	if p, ok := openaichat.ProfileNamed(s.profile); ok {
		return p
	}
	return openaichat.ProfileFor(cmp.Or(s.baseURL, openaichat.DefaultBaseURL))
}
