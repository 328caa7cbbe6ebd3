package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/secret"
)

// allowed are the variables that commands may see.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "NVM_DIR", "VIRTUAL_ENV", "PYTHONPATH",
	"CI", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// set is what every command gets besides: a program that wants a pager or a
// password would wait for somebody who is not there.
var set = []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// secretValue finds what gives a credential away whatever the variable's name:
// a user in an address, a private key, a bearer token, and the beginnings of
// the tokens of well-known services.
var secretValue = regexp.MustCompile(`://[^/?#\s]*@` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY` +
	`|(?i:\bbearer\s+\S{8})` +
	`|\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ASIA|AIza|npm_|hf_)[A-Za-z0-9_-]{12}` +
	`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.`)

// Environment filters an environment down to what a command may see: an
// allow-list and the locale, and never a name or a value that looks like a
// secret.
func Environment(env []string) []string {
	return append(slices.Clone(set), harmless(env, func(name string) bool { return slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_") })...)
}

// harmless are the variables that are wanted and do not look like a secret.
func harmless(env []string, wanted func(name string) bool) []string {
	var out []string
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if ok && wanted(name) && !secret.LikelyName(name) && !givesAway(name, value) {
			out = append(out, kv)
		}
	}
	return out
}

// givesAway reports whether a variable's value is a credential or has one in
// it. The address of a proxy needs no scheme.
func givesAway(name, value string) bool {
	return secretValue.MatchString(value) || strings.HasSuffix(strings.ToUpper(name), "_PROXY") && strings.Contains(value, "@")
}

// variable is what a variable holds for the commands.
func (o Options) variable(name string) string {
	for _, kv := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
