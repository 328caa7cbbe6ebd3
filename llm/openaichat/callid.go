package openaichat

import (
	"cmp"
	"crypto/sha256"
)

// The lengths of ids: OpenAI's limit, and the only length that Mistral accepts.
const (
	maxCallID   = 40
	shortCallID = 9
)

// callID returns the id of a call and its result for the service, normally the
// provider's own. If the service rejects another provider's id, a hash of it replaces
// it, which is the same every time.
func (m *Model) callID(provider, own string) string {
	id := cmp.Or(provider, own)
	switch {
	case m.profile.ShortIDs && (len(id) != shortCallID || !alphanumeric(id)):
		return digest(id, shortCallID)
	case len(id) > maxCallID:
		return digest(id, maxCallID/2)
	}
	return id
}

func alphanumeric(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// digest returns a hash of n letters and digits.
func digest(s string, n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := sha256.Sum256([]byte(s))
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[int(sum[i])%len(letters)]
	}
	return string(out)
}
