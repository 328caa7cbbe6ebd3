package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Config is an owner's information about providers and models, in addition to what this
// version knows. The zero value adds nothing. It must not change once a [Resolver] has
// it.
type Config struct {
	// File is the file that it was read from, empty for none.
	File string
	// Providers are additional providers, and changes to the known ones, by the prefix
	// of a model's name.
	Providers map[string]Provider
	// Models override the table's entries, by "provider/model".
	Models map[string]Override
	// Classes maps capability classes to models.
	Classes map[string]string
	// Roles maps roles that an agent file leaves open to models.
	Roles map[string]string
}

// Provider describes how to reach a provider. Empty fields keep their known values.
type Provider struct {
	BaseURL string
	// APIKeyEnv is the variable that contains the key. If it is empty, a provider that
	// is not known by name is called without a key.
	APIKeyEnv string
	// Headers are added to every request; ${NAME} in a value is a variable.
	Headers map[string]string
	// Proxy is the address of the proxy to use instead of the environment's; ${NAME} in
	// it is a variable.
	Proxy string
	// Profile is the profile of a compatible service.
	Profile string
}

// Override replaces the table's entry of a model. Zero fields keep their values.
type Override struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow, MaxOutput int
	Price                    *llm.Price
	// Can lists everything that the model can do beyond text; nil leaves that to the
	// table, and an empty list means nothing.
	Can []string
}

// apply returns the table's entry with an override.
func (o Override) apply(info Info, known bool) Info {
	info.unpriced = !known
	if o.ContextWindow > 0 {
		info.ContextWindow = o.ContextWindow
	}
	if o.MaxOutput > 0 {
		info.MaxOutput = o.MaxOutput
	}
	if o.Can != nil {
		info.Can = o.Can
	}
	if o.Price != nil {
		info.Price, info.unpriced = *o.Price, false
	}
	return info
}

// expand replaces ${NAME} by the values of variables. An unset variable is an error,
// because a request without its header would fail elsewhere.
func (r *Resolver) expand(text string) (string, error) {
	return r.expandAs(text, func(value string) string { return value })
}

// expandAs is [Resolver.expand] with a function that writes each value.
func (r *Resolver) expandAs(text string, written func(value string) string) (string, error) {
	missing := ""
	out := variable.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value := strings.TrimSpace(r.env(name))
		if value == "" && missing == "" {
			missing = name
		}
		return written(value)
	})
	if missing != "" {
		return "", fmt.Errorf("%w: set %s, which the config file names", ErrNoKey, missing)
	}
	return out, nil
}

// Credentials returns the names of the variables that contain credentials according to
// the config: keys, and variables in headers and proxies.
func (c Config) Credentials() []string {
	var names []string
	for _, p := range c.Providers {
		if p.APIKeyEnv != "" {
			names = append(names, p.APIKeyEnv)
		}
		for _, text := range append(slices.Collect(maps.Values(p.Headers)), p.Proxy) {
			for _, match := range variable.FindAllString(text, -1) {
				names = append(names, match[2:len(match)-1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// variable matches a reference to a variable.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
