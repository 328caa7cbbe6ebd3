// Package secret handles values that must not be stored or shown. It passes one to the
// tools that may have it, by name and as late as possible, so that neither the model
// nor the journal ever contains it; and it removes known values from everything that is
// journalled.
package secret

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// MinLength is the minimum number of bytes of a value that can be kept out of a
// journal. A shorter value occurs by chance in unrelated texts.
const MinLength = 8

// Secret is a value with restrictions on its use. A model refers to it as
// ${secret:NAME} in the arguments of a call.
type Secret struct {
	// Name is a letter or _ followed by letters, digits and _.
	Name  string
	Value string
	// Tools are the names of the tools that may receive the value.
	Tools []string
	// Hosts, if not empty, are the only machines that a call with the secret may reach.
	// They have no port, because the facts of a call contain no ports.
	Hosts []egress.Pattern
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidName reports whether a name is valid for a secret.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Validate returns what is wrong with a secret, without quoting the value.
func (s Secret) Validate() error {
	switch {
	case !ValidName(s.Name):
		return fmt.Errorf("secret: the name %q is not letters, digits and _", s.Name)
	case len(s.Value) < MinLength:
		return fmt.Errorf("secret: %s has %d bytes; a value of fewer than %d cannot be kept out of a journal", s.Name, len(s.Value), MinLength)
	case slices.ContainsFunc(s.Hosts, egress.Pattern.HasPort):
		return fmt.Errorf("secret: %s names a port among the hosts %s, and is for every port of a host", s.Name, s.hosts())
	}
	return nil
}

// Reference returns the text that refers to a secret in the arguments of a call, and
// that replaces it in the journal; a part of the value, base64 and hex have another
// replacement.
func Reference(name string) string { return "${secret:" + name + "}" }

// words and endings in the name of a variable indicate that its value is a credential.
var (
	words   = []string{"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "SESSION"}
	endings = []string{"_PAT", "_PWD"}
)

// LikelyName reports whether a variable's name suggests a credential.
func LikelyName(name string) bool {
	upper := strings.ToUpper(name)
	for _, w := range words {
		if strings.Contains(upper, w) {
			return true
		}
	}
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(upper, e) })
}

// proxy reports whether a variable contains the address of a proxy, which needs no
// scheme.
func proxy(name string) bool { return strings.HasSuffix(strings.ToUpper(name), "_PROXY") }

// likelyLength is the minimum length of a value that counts as a credential because of
// its variable's name alone: SESSION=wayland does not.
const likelyLength = 16

// isLocation reports whether a value is a path, an address or a text rather than a
// credential.
func isLocation(value string) bool {
	return strings.ContainsAny(value[:1], "/.~") || strings.ContainsAny(value, " \t\n\\") || strings.Contains(value, ":/")
}

// FromEnvironment returns the credentials in an environment, so that a tool which
// prints them does not put them into a journal: the values of variables whose name and
// value both suggest one. An address or a path is not a credential, but the password in
// an address is, as is a token in place of the user. The variables in named contain
// one, whatever they look like, if the value is long enough.
func FromEnvironment(env []string, named ...string) []Secret {
	var found []Secret
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		for _, v := range credentials(name, strings.TrimSpace(value), slices.Contains(named, name)) {
			if len(v) >= likelyLength && ValidName(name) {
				found = append(found, Secret{Name: name, Value: v})
			}
		}
	}
	return found
}

// credentials returns the possible secrets in a variable.
func credentials(name, value string, named bool) []string {
	switch {
	case value == "":
	case named: // it may begin with the credential's scheme, like a header
		return slices.Compact(append(strings.Fields(value), value))
	case LikelyName(name) && (!isLocation(value) || strings.Contains(value, "PRIVATE KEY-----")):
		return []string{value}
	case strings.Contains(value, "://"), proxy(name):
		return passwords(value)
	}
	return nil
}

// passwords returns the password in an address, as written and decoded. If there is
// none, or it is too short to be a credential, as with services that take a token as
// the user, a user with a digit counts as one. The name of a person or an account,
// which also occurs in paths and tables, seldom contains a digit.
func passwords(address string) []string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return nil
	}
	user, written, _ := strings.Cut(authority[:at], ":")
	if len(written) < likelyLength {
		if !strings.ContainsAny(user, "0123456789") {
			return nil
		}
		written = user
	}
	meant, err := url.PathUnescape(written)
	if err != nil || meant == written {
		return []string{written}
	}
	return []string{written, meant}
}
