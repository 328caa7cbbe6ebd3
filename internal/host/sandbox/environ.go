package sandbox

import (
	"slices"
	"strings"
)

// with sets variables in an environment, in the place of what they were: of a
// variable that is there twice, some programs take the first value and others
// the last.
func with(env []string, set ...string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(set, func(other string) bool { return strings.HasPrefix(other, name+"=") }) {
			out = append(out, kv)
		}
	}
	return append(out, set...)
}

// cached is an environment whose build cache can be written: one that is
// elsewhere than in the home directory or the workspace cannot, and without the
// variable the cache is in the home directory.
func cached(env []string, v view) []string {
	dir := lookup(env, "GOCACHE")
	if dir == "" || v.home != "" && inside(dir, v.home) || inside(dir, v.workspace) {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") })
}
