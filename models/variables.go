package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// expand puts the values of variables in the place of ${NAME}. One that is not
// set is an error: a request without its header would go wrong elsewhere.
func (r *Resolver) expand(text string) (string, error) {
	return r.expandAs(text, func(value string) string { return value })
}

// expandAs is [Resolver.expand] with values that are written in some way.
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

// variable is a place in a text where the value of a variable goes.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
