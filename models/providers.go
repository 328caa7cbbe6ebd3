package models

import (
	"cmp"
	"net"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// provider returns the model that speaks to a provider, or nil when there is
// no such provider. Keys and endpoints come from the variables that the
// providers' own SDKs read, and base URLs are taken as those take them.
func (r *Resolver) provider(name string) (llm.Model, error) {
	switch name {
	case "anthropic":
		key, token := r.secret("ANTHROPIC_API_KEY"), r.secret("ANTHROPIC_AUTH_TOKEN")
		if key == "" && token == "" {
			return nil, noKey(name, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
		}
		return anthropic.New(anthropic.Options{APIKey: key, AuthToken: token, BaseURL: r.env("ANTHROPIC_BASE_URL"), HTTP: r.HTTP}), nil
	case "openai":
		key, err := r.key(name, "OPENAI_API_KEY")
		if err != nil {
			return nil, err
		}
		return openai.New(openai.Options{
			APIKey: key, BaseURL: r.env("OPENAI_BASE_URL"), HTTP: r.HTTP,
			Organization: r.env("OPENAI_ORG_ID"), Project: r.env("OPENAI_PROJECT_ID"),
		}), nil
	case "openai-chat":
		key, err := r.key(name, "OPENAI_API_KEY")
		if err != nil && r.env("OPENAI_BASE_URL") == "" {
			return nil, err
		}
		return openaichat.New(openaichat.Options{APIKey: key, BaseURL: r.env("OPENAI_BASE_URL"), HTTP: r.HTTP}), nil
	case "google":
		key, err := r.key(name, "GEMINI_API_KEY", "GOOGLE_API_KEY")
		if err != nil {
			return nil, err
		}
		return gemini.New(gemini.Options{APIKey: key, BaseURL: r.env("GOOGLE_GEMINI_BASE_URL"), HTTP: r.HTTP}), nil
	case "ollama":
		profile, _ := openaichat.ProfileNamed("ollama")
		return openaichat.New(openaichat.Options{
			BaseURL: ollamaURL(r.env("OLLAMA_HOST")), Provider: "ollama", Profile: &profile, HTTP: r.HTTP,
		}), nil
	}
	return nil, nil
}

// key returns the first of the variables that is set.
func (r *Resolver) key(provider string, variables ...string) (string, error) {
	for _, v := range variables {
		if key := r.secret(v); key != "" {
			return key, nil
		}
	}
	return "", noKey(provider, variables...)
}

// secret reads a key. A line break at its end, as from a file, is no part of
// it.
func (r *Resolver) secret(variable string) string { return strings.TrimSpace(r.env(variable)) }

func noKey(provider string, variables ...string) error {
	return &llm.Error{
		Class: llm.ClassAuth, Provider: provider, Err: ErrNoKey,
		Message: "there is no key: set " + strings.Join(variables, " or "),
	}
}

// ollamaURL is the address of Ollama's compatible API. OLLAMA_HOST may lack
// the scheme and the port, and names the server's listening address on the
// machine where it runs.
func ollamaURL(host string) string {
	scheme, rest, ok := strings.Cut(cmp.Or(strings.TrimSpace(host), "127.0.0.1"), "://")
	if !ok {
		scheme, rest = "http", scheme
	}
	address, path, _ := strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		name, port = strings.Trim(address, "[]"), defaultPort(scheme, ok)
	}
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	base := scheme + "://" + net.JoinHostPort(name, port)
	if path = strings.Trim(path, "/"); path != "" {
		base += "/" + path
	}
	return base + "/v1"
}

func defaultPort(scheme string, given bool) string {
	switch {
	case given && scheme == "https":
		return "443"
	case given && scheme == "http":
		return "80"
	}
	return "11434"
}

// pricedAs is the name under which the table knows a target. What a compatible
// service asks for a model is known only by whose address it has.
func (r *Resolver) pricedAs(target string) string {
	name, ok := strings.CutPrefix(target, "openai-chat/")
	if !ok {
		return target
	}
	return openaichat.ProfileFor(cmp.Or(r.env("OPENAI_BASE_URL"), openaichat.DefaultBaseURL)).Name + "/" + name
}
