package models

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	client, err := r.client(name, key, s.proxy)
	if err != nil {
		return nil, fmt.Errorf("models: provider %s: %w", name, err)
	}
	a := access{name: name, service: s, key: key, client: client, headers: headers}
	return s.wire.open(r, a), nil
}

// access is what a wire needs to call a provider.
type access struct {
	service
	name, key string
	client    *http.Client
	headers   map[string]string
}

// wire is a wire format, with its original provider's address.
type wire struct {
	baseURL string
	open    func(*Resolver, access) llm.Model
}

var (
	chat            = &wire{openai.DefaultBaseURL, openChat}
	messages        = &wire{anthropic.DefaultBaseURL, openMessages}
	responses       = &wire{openai.DefaultBaseURL, openResponses}
	generateContent = &wire{gemini.DefaultBaseURL, openGenerateContent}
)

// openMessages sends the second of the keys, if it is set, in another header.
func openMessages(r *Resolver, a access) llm.Model {
	o := anthropic.Options{APIKey: a.key, BaseURL: a.baseURL, HTTP: a.client, Headers: a.headers}
	if len(a.keys) > 1 {
		o.APIKey, o.AuthToken = r.secret(a.keys[0]), r.secret(a.keys[1])
	}
	return anthropic.New(o)
}

func openResponses(r *Resolver, a access) llm.Model {
	return openai.New(openai.Options{
		APIKey: a.key, BaseURL: a.baseURL, HTTP: a.client, Headers: a.headers,
		Organization: r.env("OPENAI_ORG_ID"), Project: r.env("OPENAI_PROJECT_ID"),
	})
}

func openGenerateContent(_ *Resolver, a access) llm.Model {
	return gemini.New(gemini.Options{APIKey: a.key, BaseURL: a.baseURL, HTTP: a.client, Headers: a.headers})
}

func openChat(_ *Resolver, a access) llm.Model {
	habits := a.habits()
	return openaichat.New(openaichat.Options{
		APIKey: a.key, BaseURL: a.baseURL, Provider: a.name, Profile: &habits, HTTP: a.client, Headers: a.headers,
	})
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

// secret reads a key without a final line break, as from a file.
func (r *Resolver) secret(variable string) string { return strings.TrimSpace(r.env(variable)) }

func noKey(provider string, variables ...string) error {
	return &llm.Error{
		Class: llm.ClassAuth, Provider: provider, Err: ErrNoKey,
		Message: "there is no key: set " + strings.Join(variables, " or "),
	}
}

// client returns the HTTP client of a provider.
func (r *Resolver) client(provider, key, proxy string) (*http.Client, error) {
	o := transport.Options{Base: r.HTTP, Limiter: r.Limiter, Provider: provider, Key: key}
	if proxy != "" {
		var err error
		if o.Proxy, err = r.proxy(proxy); err != nil {
			return nil, err
		}
	}
	return transport.New(o)
}

// ollamaURL returns the address of Ollama's compatible API. OLLAMA_HOST may lack the
// scheme and the port, and on the server's own machine it is the server's listening
// address.
func ollamaURL(host string) string {
	scheme, rest, ok := strings.Cut(cmp.Or(strings.TrimSpace(host), "127.0.0.1"), "://")
	if !ok {
		scheme, rest = "http", scheme
	}
	rest, query, _ := strings.Cut(rest, "?")
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
	if base += "/v1"; query != "" {
		base += "?" + query
	}
	return base
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

// errProxy does not contain the address, because it may contain a password.
var errProxy = errors.New("proxy: the address is none; it must be like http://proxy.example:3128")

// proxy parses the address of a proxy. A variable may be all of it, or a part; one
// before the "@" is a literal name or password, whatever characters it contains.
func (r *Resolver) proxy(text string) (*url.URL, error) {
	at := strings.LastIndexByte(text, '@') + 1
	user, err := r.expandAs(text[:at], func(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") })
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	address, err := r.expand(text[at:])
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	u, err := url.Parse(user + address)
	if err != nil || u.Host == "" {
		return nil, errProxy
	}
	return u, nil
}
