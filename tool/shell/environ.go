package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/secret"
)

// allowed lists the variables that commands may see.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "NVM_DIR", "VIRTUAL_ENV", "PYTHONPATH",
	"CI", "NO_COLOR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// set is added to every command's environment: a program that opens a pager or asks for
// a password would block forever.
var set = []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// userInAddress matches an address with a user, and so possibly a password.
var userInAddress = regexp.MustCompile(`://[^/?#\s]*@`)

// Environment returns the variables of env that a command may see: an allow-list and
// the locale, without names that look like secrets and addresses with a user.
func Environment(env []string) []string {
	out := slices.Clone(set)
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		wanted := slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_")
		if ok && wanted && !secret.LikelyName(name) && !namesUser(name, value) {
			out = append(out, kv)
		}
	}
	return out
}

// namesUser reports whether a variable's value contains an address with a user. The
// address of a proxy needs no scheme.
func namesUser(name, value string) bool {
	return userInAddress.MatchString(value) || strings.HasSuffix(strings.ToUpper(name), "_PROXY") && strings.Contains(value, "@")
}

// variable returns the value of a variable for the commands.
func (o Options) variable(name string) string {
	for _, kv := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
