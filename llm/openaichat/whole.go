package openaichat

import (
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// argText is the arguments of a call as they come in.
type argText struct {
	strings.Builder
	// read is how far the text was followed, the rest is where that led.
	read    int
	depth   int
	quoted  bool
	escaped bool
	// broken says that nothing can follow that makes it JSON.
	broken bool
}

// whole reports whether the text is JSON, when an object is about to follow it.
// That is asked for one fragment after the other, so the text is only read as
// JSON where its brackets and quotes have come to their ends: either that is a
// value, or with the object behind it it never will be one.
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
