package models

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

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
