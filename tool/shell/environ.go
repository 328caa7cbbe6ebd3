package shell

import (
	"slices"
	"strings"
)

// allowed are the variables that commands may see.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "PWD",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "NVM_DIR", "VIRTUAL_ENV", "PYTHONPATH",
	"CI", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
}

// secretWords in a name keep a variable out, whatever else allows it.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE", "SESSION"}

// Environment filters an environment down to what a command may see: an
// allow-list and the locale, and never a name that looks like a secret.
func Environment(env []string) []string {
	var out []string
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if ok && (slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_")) && !looksSecret(name) {
			out = append(out, kv)
		}
	}
	return out
}

func looksSecret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) })
}
