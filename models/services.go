package models

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/pawlrun/pawl/llm/openaichat"
)

// service describes how to reach a provider.
type service struct {
	// wire is its wire format.
	wire *wire
	// baseURL is the address; empty means the wire's default. If baseEnv is set, that
	// variable overrides it.
	baseURL, baseEnv string
	address          func(string) string
	// keys are the variables that may contain the key; the first one that is set
	// counts. optional reports that it also works without.
	keys     []string
	optional bool
	// elsewhere reports that at another address than the wire's own it may be any
	// compatible server, which usually needs no key, and whose price depends on its
	// address.
	elsewhere bool
	// local reports that its users usually run it themselves, and pay nothing per token
	// in their own network.
	local   bool
	profile string
	// telemetry is its name in OpenTelemetry's conventions, if different.
	telemetry string
	// custom reports that only the config file defines it.
	custom  bool
	headers map[string]string
	proxy   string
}

// services are the providers known by name, with the addresses and variables from their
// documentation. Differences of a compatible service from OpenAI are in its profile
// ([openaichat.Profile]).
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

// TelemetryName returns the name of a provider in OpenTelemetry's conventions.
func TelemetryName(provider string) string { return cmp.Or(services[provider].telemetry, provider) }

// KnownProviders lists the providers that are known by name.
func KnownProviders() []string { return slices.Sorted(maps.Keys(services)) }

// providerNames lists all providers: the known ones and those of the config.
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

// service returns a provider with the config applied. The config takes precedence over
// variables that other tools read too.
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
		s.baseEnv = "" // the variable does not apply
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

// checkAddress rejects an invalid address before a run begins. The error does not
// contain it, because it may contain a password.
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

// habits returns the profile of a compatible service, by its name or its address.
func (s service) habits() openaichat.Profile {
	if p, ok := openaichat.ProfileNamed(s.profile); ok {
		return p
	}
	return openaichat.ProfileFor(cmp.Or(s.baseURL, openaichat.DefaultBaseURL))
}
