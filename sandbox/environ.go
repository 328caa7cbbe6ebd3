package sandbox

import "strings"

// with sets variables in an environment, in the place of what they were: of a
// variable that is there twice, some programs take the first value and others
// the last.
func with(env []string, set ...string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !holds(set, name) {
			out = append(out, kv)
		}
	}
	return append(out, set...)
}

func holds(env []string, name string) bool {
	for _, kv := range env {
		if n, _, _ := strings.Cut(kv, "="); n == name {
			return true
		}
	}
	return false
}
