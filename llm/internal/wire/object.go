package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

func (m member) String() string { return m.name + ": " + string(AppendCompact(nil, m.value, "")) }

// object is a JSON object with the order of its members, because models fill in a
// schema in that order.
type object []member

// members parses a JSON object.
func members(raw json.RawMessage) (object, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var o object
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		m.name, _ = t.(string)
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		o = append(o, m)
	}
	return o, true
}

func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o object) has(name string) bool { return o.get(name) != nil }

// text returns the value of a string member, or "".
func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o.get(name), &s)
	return s
}

func (o object) encode() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendQuoted(b, m.name), ':')
		b = AppendCompact(b, m.value, "null")
	}
	return append(b, '}')
}

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
