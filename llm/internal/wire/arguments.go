package wire

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Arguments reads what a call was given, once it is there whole. No text is no
// arguments; what is no JSON stays text, so that it never becomes a call that
// can run.
func Arguments(said string) (args json.RawMessage, text string) {
	switch {
	case strings.TrimSpace(said) == "":
		return json.RawMessage("{}"), ""
	case Valid([]byte(said)):
		return json.RawMessage(said), ""
	}
	return nil, said
}

// SentArguments are the arguments of a call as they go back to a service that
// reads them as JSON: the object that the model gave, and {} for anything else.
// Such a service refuses every request of a conversation with a call whose
// arguments it cannot read, and the call's result says what they were.
func SentArguments(c *llm.ToolCall) json.RawMessage {
	if !Object(c.Args) {
		return json.RawMessage("{}")
	}
	return sendable(c.Args)
}

// Object reports whether raw is a JSON object in which no object names a member
// twice: readers differ on what that means, and some refuse it.
func Object(raw json.RawMessage) bool {
	at := skipSpace(raw, 0)
	if at == len(raw) || raw[at] != '{' {
		return false
	}
	return distinct(ScanNested(raw))
}

// distinct walks an object or an array to its end.
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
