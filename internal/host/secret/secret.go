// Package secret keeps values that must not be written down. It hands one to
// the tools that may have it, by name and at the last moment, so that neither
// the model nor the journal ever holds it; and it takes known values out of
// everything that is journalled.
package secret

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// MinLength is the least number of bytes of a value that can be kept out of a
// journal. Something shorter is found by chance in texts that have nothing to
// do with it.
const MinLength = 8

// Secret is one value and who may have it. A model names it as ${secret:NAME}
// in the arguments of a call.
type Secret struct {
	// Name is a letter or _ followed by letters, digits and _.
	Name  string
	Value string
	// Tools are the names of the tools that may be given the value.
	Tools []string
	// Hosts, where there are any, are the only ones that a call which names the
	// secret may reach. They have no port: a call says which machines it reaches,
	// not at which port.
	Hosts []egress.Pattern
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidName reports whether a secret may have a name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Validate says what is wrong with a secret. The error does not quote the value.
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

// Reference is how the arguments of a call name a secret, and what stands in
// the journal in its place; a part of it, base64 and hex have another sign there.
func Reference(name string) string { return "${secret:" + name + "}" }

// words in the name of a variable say that its value is a credential, and so do
// endings of it.
var (
	words   = []string{"KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "COOKIE", "SESSION"}
	endings = []string{"_PAT", "_PWD"}
)

// LikelyName reports whether a variable's name is one that credentials have.
func LikelyName(name string) bool {
	upper := strings.ToUpper(name)
	for _, w := range words {
		if strings.Contains(upper, w) {
			return true
		}
	}
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(upper, e) })
}

// proxy reports whether a variable holds the address of a proxy, which needs no
// scheme.
func proxy(name string) bool { return strings.HasSuffix(strings.ToUpper(name), "_PROXY") }

// likelyLength is the least length of a value that is taken for a credential
// because of its variable's name alone: SESSION=wayland is none.
const likelyLength = 16

// isLocation reports whether a value is a path, an address or a text rather than a
// credential.
func isLocation(value string) bool {
	return strings.ContainsAny(value[:1], "/.~") || strings.ContainsAny(value, " \t\n\\") || strings.Contains(value, ":/")
}

// FromEnvironment picks the variables whose names say that they hold a
// credential and whose values look like one, so that a tool which prints them
// does not put them into a journal. An address or a path is none, but the
// password in an address is one, as is a token in the user's place. Those that are
// named hold one whatever they look like, if it is long enough.
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

// credentials are what may be secret in a variable.
func credentials(name, value string, named bool) []string {
	switch {
	case value == "":
	case named: // it may say of what kind the credential is, as headers do
		return slices.Compact(append(strings.Fields(value), value))
	case LikelyName(name) && (!isLocation(value) || strings.Contains(value, "PRIVATE KEY-----")):
		return []string{value}
	case strings.Contains(value, "://"), proxy(name):
		return passwords(value)
	}
	return nil
}

// passwords is the password in an address, as it stands there and as it is meant;
// where there is none, or one too short to be a credential, as services write that
// take a token for the user, a user with a digit is taken for one. The name of a
// person or an account, which paths and tables have as well, seldom has one.
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
