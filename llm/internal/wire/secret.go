package wire

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// minSecret is the length below which a header's value counts as a placeholder:
// replacing "x" in a message would only damage it.
const minSecret = 8

// redacted replaces a secret.
const redacted = "[redacted]"

// secretsOf returns the credentials among a request's headers.
func secretsOf(h http.Header) []string {
	var secrets []string
	for name, values := range h {
		if !namesSecret(name) {
			continue
		}
		for _, v := range values {
			if fields := strings.Fields(v); len(fields) > 0 {
				// The scheme, such as "Bearer", precedes it.
				v = fields[len(fields)-1]
			}
			if len(v) >= minSecret {
				secrets = append(secrets, v)
			}
		}
	}
	return secrets
}

// secretsIn returns the credentials in an address, decoded and as written. Names do not
// identify credentials in a query ("sig", "code"), so every value except a version
// counts as one.
func secretsIn(u *url.URL) []string {
	if u == nil {
		return nil
	}
	password, _ := u.User.Password()
	values := []string{u.User.Username(), password}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, named := strings.Cut(pair, "=")
		switch {
		case !named:
			value = name
		case strings.Contains(strings.ToLower(name), "version"):
			continue
		}
		if meant, err := url.QueryUnescape(value); err == nil {
			values = append(values, meant)
		}
		values = append(values, value)
	}
	var secrets []string
	for _, v := range values {
		if len(v) >= minSecret {
			secrets = append(secrets, v, url.QueryEscape(v), url.PathEscape(v))
		}
	}
	return secrets
}

// plain returns an address without possible credentials.
func plain(u url.URL) string {
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// withoutCredentials replaces the address in an error by one without credentials; Go
// itself hides only a password.
func withoutCredentials(err error) error {
	failed, ok := err.(*url.Error)
	if !ok {
		return err
	}
	bare := *failed
	if u, err := url.Parse(failed.URL); err == nil {
		bare.URL = plain(*u)
	} else {
		bare.URL, bare.Err = redacted, errors.New("it is no address")
	}
	return &bare
}

func namesSecret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "key", "token", "secret", "password", "cookie"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Redact removes the request's credentials from a provider's message. Some gateways
// repeat the key that they reject, and the journal, the terminal and their readers show
// the text of an error.
func (x *Exchange) Redact(e *llm.Error) *llm.Error {
	e.Message, e.Code = x.redact(e.Message), x.redact(e.Code)
	return e
}

// secrets returns the credentials in the request.
func (x *Exchange) secrets() []string { return append(secretsOf(x.asked), secretsIn(x.address)...) }

func (x *Exchange) redact(text string) string {
	if text == "" {
		return ""
	}
	for _, s := range x.secrets() {
		text = strings.ReplaceAll(text, s, redacted)
	}
	return text
}

// excerpt returns the beginning of a provider's text. It cuts after redacting, because
// the redaction would miss half a credential.
func (x *Exchange) excerpt(text string) string { return excerpt(x.redact(text)) }
