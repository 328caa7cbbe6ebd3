package models

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/gemini"
	"github.com/pawlrun/pawl/llm/openai"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/llm/transport"
)

// provider returns the model that speaks to a provider, or nil when there is
// no such provider. Keys and endpoints come from the config and from the
// variables that the providers' own SDKs read, and base URLs are taken as those
// take them.
func (r *Resolver) provider(name string) (llm.Model, error) {
	s, ok := r.service(name)
	if !ok {
		return nil, nil
	}
	key := r.key(s.keys)
	if key == "" && !s.optional {
		return nil, noKey(name, s.keys...)
	}
	if err := s.checkAddress(); err != nil {
		return nil, fmt.Errorf("models: provider %s: %w", name, err)
	}
	headers, err := r.headers(s.headers)
	if err != nil {
		return nil, fmt.Errorf("models: provider %s: headers: %w", name, err)
	}
	client, err := r.client(name, s.proxy)
	if err != nil {
		return nil, fmt.Errorf("models: provider %s: %w", name, err)
	}
	switch s.protocol {
	case messages:
		o := anthropic.Options{APIKey: key, BaseURL: s.baseURL, HTTP: client, Headers: headers}
		if len(s.keys) > 1 { // which of them is set says in which header it goes
			o.APIKey, o.AuthToken = r.secret("ANTHROPIC_API_KEY"), r.secret("ANTHROPIC_AUTH_TOKEN")
		}
		return anthropic.New(o), nil
	case responses:
		return openai.New(openai.Options{
			APIKey: key, BaseURL: s.baseURL, HTTP: client, Headers: headers,
			Organization: r.env("OPENAI_ORG_ID"), Project: r.env("OPENAI_PROJECT_ID"),
		}), nil
	case generateContent:
		return gemini.New(gemini.Options{APIKey: key, BaseURL: s.baseURL, HTTP: client, Headers: headers}), nil
	}
	habits := s.habits()
	return openaichat.New(openaichat.Options{
		APIKey: key, BaseURL: s.baseURL, Provider: name, Profile: &habits, HTTP: client, Headers: headers,
	}), nil
}

// key returns the value of the first of the variables that is set.
func (r *Resolver) key(variables []string) string {
	for _, v := range variables {
		if key := r.secret(v); key != "" {
			return key
		}
	}
	return ""
}

func (r *Resolver) headers(from map[string]string) (map[string]string, error) {
	headers := make(map[string]string, len(from))
	for name, value := range from {
		var err error
		if headers[name], err = r.expand(value); err != nil {
			return nil, err
		}
	}
	return headers, nil
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

// client returns the HTTP client of a provider.
func (r *Resolver) client(provider, proxy string) (*http.Client, error) {
	o := transport.Options{Base: r.HTTP, Limiter: r.Limiter, Provider: provider}
	if proxy != "" {
		var err error
		if o.Proxy, err = r.proxy(proxy); err != nil {
			return nil, err
		}
	}
	return transport.New(o)
}
