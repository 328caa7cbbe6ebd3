package sandbox

import (
	"slices"
	"strings"
)

// with sets variables in an environment and removes earlier values: if a variable
// occurs twice, some programs use the first value and others the last.
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

// cached sets the variable of the build cache if the cache would not be writable,
// because it is outside the home directory and the workspace. Without the variable, the
// cache is in the home directory.
func cached(env []string, v view) []string {
	dir := lookup(env, "GOCACHE")
	if dir == "" || v.home != "" && inside(dir, v.home) || inside(dir, v.workspace) {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") })
}
