package wire

import (
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// minSecret is the length below which a header's value is taken for a
// placeholder: to strike "x" out of a message would only spoil it.
const minSecret = 8

// redacted stands where a secret was.
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
				// What precedes it is the scheme, such as "Bearer".
				v = fields[len(fields)-1]
			}
			if len(v) >= minSecret {
				secrets = append(secrets, v)
			}
		}
	}
	return secrets
}

func namesSecret(header string) bool {
	header = strings.ToLower(header)
	for _, part := range []string{"auth", "key", "token", "secret", "password", "cookie"} {
		if strings.Contains(header, part) {
			return true
		}
	}
	return false
}

// Redact takes the request's credentials out of what a provider said. Some
// gateways repeat the key that they refuse, and an error's text goes into the
// journal, to the terminal and to whoever is sent either (PRODUCT 6).
func (x *Exchange) Redact(e *llm.Error) *llm.Error {
	e.Message, e.Code = x.redact(e.Message), x.redact(e.Code)
	return e
}

func (x *Exchange) redact(text string) string {
	for _, s := range secretsOf(x.asked) {
		text = strings.ReplaceAll(text, s, redacted)
	}
	return text
}

// excerpt is what is kept of a text that a provider said. It is cut behind the
// redaction, which would not know half a credential.
func (x *Exchange) excerpt(text string) string { return excerpt(x.redact(text)) }
