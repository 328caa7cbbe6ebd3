package spec

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretName   = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie|credential`)
	variableUse  = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
)

func (c *Config) validate(r *report, o ConfigOptions) {
	for _, name := range sortedKeys(c.Providers) {
		path := join("providers", name)
		switch {
		case name == "scripted" || name == "replay":
			r.at(path, "another name", "%q is built in and cannot be changed", name)
			continue
		case !providerName.MatchString(name):
			r.at(path, "a name of small letters, digits, dots and dashes", "%q is not the name of a provider", name)
		}
		p := c.Providers[name]
		p.validate(r, path, slices.Contains(o.Providers, name), o)
	}
	for _, name := range sortedKeys(c.Models) {
		path := join("models", name)
		target(r, path, name)
		m := c.Models[name]
		within(r, path+".context_window", m.ContextWindow, 1, 1_000_000_000)
		within(r, path+".max_output", m.MaxOutput, 1, 1_000_000_000)
		for i, ability := range m.Can {
			if o.Abilities != nil {
				oneOf(r, path+".can["+strconv.Itoa(i)+"]", ability, o.Abilities...)
			}
		}
		if m.Price != nil {
			m.Price.validate(r, path+".price")
		}
	}
	for _, name := range sortedKeys(c.Classes) {
		target(r, join("classes", name), c.Classes[name])
	}
	for _, role := range []struct{ path, model string }{
		{"roles.architect", c.Roles.Architect}, {"roles.editor", c.Roles.Editor}, {"roles.subagent", c.Roles.Subagent},
	} {
		if r.has(role.path) {
			target(r, role.path, role.model)
		}
	}
}

func target(r *report, path, name string) {
	provider, model, ok := strings.Cut(name, "/")
	if r.reported(path) || ok && provider != "" && model != "" {
		return
	}
	r.at(path, "provider/model, for example anthropic/claude-sonnet-4-5", "is %q", name)
}

// validate never shows a value that may be a key by mistake.
func (p ConfigProvider) validate(r *report, path string, known bool, o ConfigOptions) {
	switch {
	case p.BaseURL == "" && !known && !r.has(path+".base_url"):
		missing(r, path+".base_url", "the address of a service that is compatible with chat completions")
	case r.has(path + ".base_url"):
		address(r, path+".base_url", p.BaseURL, "http", "https")
	}
	if at := path + ".api_key_env"; r.has(at) && !r.reported(at) && !variableName.MatchString(p.APIKeyEnv) {
		r.at(at, "the name of a variable in capitals, such as GROQ_API_KEY", "is not the name of a variable; no key belongs in a file")
	}
	for _, name := range sortedKeys(p.Headers) {
		at, value := join(path+".headers", name), p.Headers[name]
		switch {
		case !headerName.MatchString(name):
			r.at(at, "the name of a header", "%q is not the name of a header", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			r.at(at, "one line", "is not one line")
		case secretName.MatchString(name) && value != "" && !variableUse.MatchString(value):
			r.at(at, "a variable, such as ${MY_TOKEN}", "looks like a secret, which does not belong in a file")
		}
	}
	if at := path + ".proxy"; r.has(at) && !variableUse.MatchString(p.Proxy) {
		address(r, at, p.Proxy, "http", "https", "socks5", "socks5h")
	}
	if at := path + ".profile"; o.Profiles != nil {
		oneOf(r, at, p.Profile, o.Profiles...)
	}
}

func address(r *report, path, text string, schemes ...string) {
	if r.reported(path) {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		r.at(path, "an address such as "+schemes[0]+"://host:8080", "is not an address that begins with %s://", strings.Join(schemes, ":// or "))
	case u.User != nil:
		r.at(path, "an address without a name and a password", "holds a password, which does not belong in a file; ${NAME} stands for a variable in headers and proxy")
	}
}

func (p ConfigPrice) validate(r *report, path string) {
	if p.Input == nil {
		missing(r, path+".input", "USD per million tokens")
	}
	if p.Output == nil {
		missing(r, path+".output", "USD per million tokens")
	}
	const most = 1_000_000
	within(r, path+".input", p.Input, 0, most)
	within(r, path+".output", p.Output, 0, most)
	within(r, path+".cache_read", p.CacheRead, 0, most)
	within(r, path+".cache_write", p.CacheWrite, 0, most)
}
