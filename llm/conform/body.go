package conform

import (
	"fmt"

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
