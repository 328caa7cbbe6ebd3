package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Config is what an owner says of providers and models beyond what this
// version knows of itself. The zero value adds nothing. It is not changed once
// a [Resolver] has it.
type Config struct {
	// Providers are further providers, and changes to the known ones, by the
	// prefix of a model's name.
	Providers map[string]Provider
	// Models replace what the table knows of a model, by "provider/model".
	Models map[string]Override
	// Classes are the models that capability classes stand for.
	Classes map[string]string
	// Roles are the models of the roles that an agent file leaves open.
	Roles map[string]string
}

// Provider is how a provider is reached. What is empty stays as it is known.
type Provider struct {
	BaseURL string
	// APIKeyEnv is the variable that holds the key. A provider that is not
	// known by name is called without a key when it is empty.
	APIKeyEnv string
	// Headers are added to every request; ${NAME} in a value is a variable.
	Headers map[string]string
	// Proxy is the address of the proxy to use in place of the environment's;
	// ${NAME} in it is a variable.
	Proxy string
	// Profile names the habits of a compatible service.
	Profile string
}

// Override replaces what the table knows of a model. What is zero stays.
type Override struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow, MaxOutput int
	Price                    *llm.Price
	// Can lists what the model can do beyond text, all of it; nil leaves that
	// to the table, and an empty list means nothing.
	Can []string
}

// apply lays an override over what the table knows.
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

// expand puts the values of variables in the place of ${NAME}. One that is not
// set is an error: a request without its header would go wrong elsewhere.
func (r *Resolver) expand(text string) (string, error) {
	missing := ""
	out := variable.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value := strings.TrimSpace(r.env(name))
		if value == "" && missing == "" {
			missing = name
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("%w: set %s, which the config file names", ErrNoKey, missing)
	}
	return out, nil
}

// Credentials are the names of the variables in which the config says that
// credentials are: keys, and what headers and proxies take from the environment.
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

var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
