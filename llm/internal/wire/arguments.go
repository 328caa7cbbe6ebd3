package wire

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Arguments decodes the complete arguments of a call. Empty text means no arguments;
// invalid JSON stays text, so that it never becomes a call that can run.
func Arguments(said string) (args json.RawMessage, text string) {
	switch {
	case strings.TrimSpace(said) == "":
		return json.RawMessage("{}"), ""
	case Valid([]byte(said)):
		return json.RawMessage(said), ""
	}
	return nil, said
}

// SentArguments returns the arguments of a call for a service that parses them as JSON:
// the model's object, or {} for anything else. Such a service rejects every request of
// a conversation that contains a call with invalid arguments; the call's result
// contains the original text.
func SentArguments(c *llm.ToolCall) json.RawMessage {
	if !Object(c.Args) {
		return json.RawMessage("{}")
	}
	return sendable(c.Args)
}

// Object reports whether raw is a JSON object without duplicate members at any depth:
// readers interpret those differently, and some reject them.
func Object(raw json.RawMessage) bool {
	at := skipSpace(raw, 0)
	if at == len(raw) || raw[at] != '{' {
		return false
	}
	return distinct(ScanNested(raw))
}

// distinct checks an object or an array to its end.
func distinct(m *Members) bool {
	seen := map[string]bool{}
	for m.Next() {
		if !m.array {
			if seen[string(m.key)] {
				return false
			}
			seen[string(m.key)] = true
		}
		if m.unread {
			inner := m.inside(m.is('['))
			if !distinct(&inner) {
				return false
			}
			m.Pass(&inner)
		}
	}
	return m.err == nil
}
