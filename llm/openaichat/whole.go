package openaichat

import (
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// argText is the text of a call's arguments in progress.
type argText struct {
	strings.Builder
	// read is the offset up to which the text was scanned; the other fields are the
	// state there.
	read    int
	depth   int
	quoted  bool
	escaped bool
	// broken reports that no continuation makes the text valid JSON.
	broken bool
}

// whole reports whether the text is complete JSON, when an object is about to follow
// it. It is called for each fragment, so it parses the text only if all brackets and
// quotes are closed: then the text is either a value, or cannot become one by adding
// the object.
func (a *argText) whole() bool {
	text := a.String()
	for ; a.read < len(text); a.read++ {
		a.follow(text[a.read])
	}
	if a.broken || a.depth > 0 || a.quoted || strings.TrimSpace(text) == "" {
		return false
	}
	a.broken = !wire.Valid([]byte(text))
	return !a.broken
}

func (a *argText) follow(c byte) {
	switch {
	case a.escaped:
		a.escaped = false
	case a.quoted && c == '\\':
		a.escaped = true
	case c == '"':
		a.quoted = !a.quoted
	case a.quoted:
	case c == '{' || c == '[':
		a.depth++
	case c == '}' || c == ']':
		a.depth--
	}
}
