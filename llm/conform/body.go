package conform

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxMarks is the number of cache breakpoints that Anthropic accepts in a request.
const maxMarks = 4

// body holds the parts of a request outside its conversation that rules depend on.
type body struct {
	model        string
	conversation []byte
	// bare reports that the conversation is a single text.
	bare            bool
	stored, chained bool
	marks           int
}

func bodyOf(w Wire, request []byte) (body, error) {
	member := map[Wire]string{Anthropic: "messages", Responses: "input", Chat: "messages", Gemini: "contents"}[w]
	if member == "" {
		return body{}, fmt.Errorf("conform: there is no wire %q; there are %v", w, Wires())
	}
	b := body{stored: w == Responses}
	found := false
	m := wire.ScanObject(request)
	for m.Next() {
		v := m.Value()
		switch key := string(m.Key()); {
		case key == member:
			found = true
			if b.bare = v[0] == '"'; !b.bare && v[0] == '[' {
				b.conversation = v[1 : len(v)-1]
			}
			b.marks += marks(v)
		case key == "system" || key == "tools":
			b.marks += marks(v)
		case key == "model":
			b.model = wire.Text(v)
		case key == "previous_response_id" || key == "conversation":
			b.chained = b.chained || given(v)
		case key == "store":
			b.stored = string(v) != "false"
		}
	}
	switch {
	case m.Err() != nil:
		return b, fmt.Errorf("conform: the request is no JSON object")
	case !found && !b.chained:
		return b, fmt.Errorf("conform: a request of %s has its conversation in %q, and there is none", w, member)
	}
	return b, nil
}

// marks counts the cache breakpoints in a list of messages, blocks or tools.
func marks(list []byte) int {
	n := 0
	if len(list) == 0 || list[0] != '[' {
		return 0
	}
	for item := wire.ScanArray(list); item.Next(); {
		if v := item.Value(); len(v) == 0 || v[0] != '{' {
			continue
		}
		for m := wire.ScanObject(item.Value()); m.Next(); {
			switch string(m.Key()) {
			case "cache_control":
				if string(m.Value()) != "null" {
					n++
				}
			case "content":
				n += marks(m.Value())
			}
		}
	}
	return n
}

// idLike reports whether a text consists of at most limit letters, digits, "_", "-" and
// the characters in also.
func idLike(s string, limit int, also string) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			continue
		}
		if strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}

// blank reports whether a JSON string contains only white space.
func blank(value []byte) bool {
	if len(value) < 2 || value[0] != '"' {
		return true
	}
	for i := 1; i < len(value)-1; i++ {
		switch c := value[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(value)-1 && (value[i+1] == 'n' || value[i+1] == 't' || value[i+1] == 'r'):
			i++
		default:
			return false
		}
	}
	return true
}

// given reports whether a value is present: not null and not an empty text, list or
// object.
func given(value []byte) bool {
	switch string(value) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

func isList(value []byte) bool { return len(value) > 0 && value[0] == '[' }

func isText(value []byte) bool { return len(value) > 0 && value[0] == '"' }
