package wire

import (
	"bytes"
	"encoding/json"
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
