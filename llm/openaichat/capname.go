package openaichat

import (
	"strings"
	"sync"

	"github.com/pawlrun/pawl/llm"
)

// The names of the member that caps the answer. OpenAI's newer models reject the first;
// most servers that copy the API know only the first.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// capNames records the names that models have rejected. The zero value is ready for use
// and safe for concurrent use.
type capNames struct {
	mu      sync.Mutex
	refused map[string]map[string]bool
}

// name returns the name to send: the profile's, unless the model has rejected it but
// not the other one.
func (c *capNames) name(model, profile string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := otherName(profile); c.refused[model][profile] && !c.refused[model][other] {
		return other
	}
	return profile
}

func otherName(name string) string {
	if name == maxTokens {
		return maxCompletionTokens
	}
	return maxTokens
}

// learn records the rejection of the name that was sent, and reports whether the other
// name is sent from now on.
func (c *capNames) learn(model, profile string, e *llm.Error) bool {
	name := refusedName(e)
	if name == "" {
		return false
	}
	c.mu.Lock()
	if c.refused == nil {
		c.refused = map[string]map[string]bool{}
	}
	if c.refused[model] == nil {
		c.refused[model] = map[string]bool{}
	}
	c.refused[model][name] = true
	c.mu.Unlock()
	return c.name(model, profile) != name
}

// refusedName returns the name that an error reports as unsupported, "" for none. It is
// the first name in the message, which may mention the other one as the replacement.
func refusedName(e *llm.Error) string {
	message := strings.ToLower(e.Message)
	if e.Class != llm.ClassInvalid || !unsupported(e.Code, message) {
		return ""
	}
	first, name := len(message), ""
	for _, n := range [...]string{maxTokens, maxCompletionTokens} {
		if at := strings.Index(message, n); at >= 0 && at < first {
			first, name = at, n
		}
	}
	return name
}

// unsupported reports whether an error rejects a parameter itself and not its value.
func unsupported(code, message string) bool {
	if code == "unsupported_parameter" || code == "unknown_parameter" {
		return true
	}
	for _, words := range [...]string{
		"unsupported parameter", "not supported", "does not support", "unrecognized", "unknown parameter", "unknown field", "unexpected keyword", "extra_forbidden",
		"extra inputs", "unexpected field", "is deprecated", "not permitted", "additional properties",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
