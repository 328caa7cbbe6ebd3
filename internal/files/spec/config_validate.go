package spec

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
)

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	secretName   = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie|credential`)
	variableUse  = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
)

func (c *Config) validate(r *decode.Report, o ConfigOptions) {
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		path := decode.Join("providers", name)
		switch {
		case name == "scripted" || name == "replay":
			r.At(path, "another name", "%q is built in and cannot be changed", name)
			continue
		case !providerName.MatchString(name):
			r.At(path, "a name of small letters, digits, dots and dashes", "%q is not the name of a provider", name)
		}
		p := c.Providers[name]
		p.validate(r, path, slices.Contains(o.Providers, name), o)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		path := decode.Join("models", name)
		target(r, path, name)
		m := c.Models[name]
		decode.Within(r, path+".context_window", m.ContextWindow, 1, 1_000_000_000)
		decode.Within(r, path+".max_output", m.MaxOutput, 1, 1_000_000_000)
		for i, ability := range m.Can {
			if o.Abilities != nil {
				decode.OneOf(r, path+".can["+strconv.Itoa(i)+"]", ability, o.Abilities...)
			}
		}
		if m.Price != nil {
			m.Price.validate(r, path+".price")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		target(r, decode.Join("classes", name), c.Classes[name])
	}
	for _, role := range []struct{ path, model string }{
		{"roles.architect", c.Roles.Architect}, {"roles.editor", c.Roles.Editor}, {"roles.subagent", c.Roles.Subagent},
	} {
		if r.Has(role.path) {
			target(r, role.path, role.model)
		}
	}
}

func target(r *decode.Report, path, name string) {
	provider, model, ok := strings.Cut(name, "/")
	if r.Reported(path) || ok && provider != "" && model != "" {
		return
	}
	r.At(path, "provider/model, for example anthropic/claude-sonnet-4-5", "is %q", name)
}

// validate never quotes a value that may be a key.
func (p ConfigProvider) validate(r *decode.Report, path string, known bool, o ConfigOptions) {
	switch {
	case p.BaseURL == "" && !known && !r.Has(path+".base_url"):
		decode.Missing(r, path+".base_url", "the address of a service that is compatible with chat completions")
	case r.Has(path + ".base_url"):
		address(r, path+".base_url", p.BaseURL, "http", "https")
	}
	if at := path + ".api_key_env"; r.Has(at) && !r.Reported(at) && !variableName.MatchString(p.APIKeyEnv) {
		r.At(at, "the name of a variable in capitals, such as GROQ_API_KEY", "is not the name of a variable; no key belongs in a file")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		at, value := decode.Join(path+".headers", name), p.Headers[name]
		switch {
		case !headerName.MatchString(name):
			r.At(at, "the name of a header", "%q is not the name of a header", name)
		case strings.ContainsAny(value, "\r\n\x00"):
			r.At(at, "one line", "is not one line")
		case secretName.MatchString(name) && value != "" && !variableUse.MatchString(value):
			r.At(at, "a variable, such as ${MY_TOKEN}", "looks like a secret, which does not belong in a file")
		}
	}
	if at := path + ".proxy"; r.Has(at) && !variableUse.MatchString(p.Proxy) {
		address(r, at, p.Proxy, "http", "https", "socks5", "socks5h")
	}
	if at := path + ".profile"; o.Profiles != nil {
		decode.OneOf(r, at, p.Profile, o.Profiles...)
	}
}

func address(r *decode.Report, path, text string, schemes ...string) {
	if r.Reported(path) {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		r.At(path, "an address such as "+schemes[0]+"://host:8080", "is not an address that begins with %s://", strings.Join(schemes, ":// or "))
	case u.User != nil:
		r.At(path, "an address without a name and a password", "holds a password, which does not belong in a file; ${NAME} stands for a variable in headers and proxy")
	}
}

func (p ConfigPrice) validate(r *decode.Report, path string) {
	if p.Input == nil {
		decode.Missing(r, path+".input", "USD per million tokens")
	}
	if p.Output == nil {
		decode.Missing(r, path+".output", "USD per million tokens")
	}
	const most = 1_000_000
	decode.Within(r, path+".input", p.Input, 0, most)
	decode.Within(r, path+".output", p.Output, 0, most)
	decode.Within(r, path+".cache_read", p.CacheRead, 0, most)
	decode.Within(r, path+".cache_write", p.CacheWrite, 0, most)
}
