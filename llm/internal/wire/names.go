package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
)

// Names maps tool names, which have dots here, to what a provider allows, and
// back. Two names that would become one are kept apart by a hash.
type Names struct {
	limit   int
	clashes string
	toWire  map[string]string
	toLocal map[string]string
}

// NewNames maps the names of the tools that a request offers. limit is the
// longest name that the provider takes.
func NewNames(tools []llm.ToolDef, limit int) *Names {
	n := &Names{limit: limit, toWire: make(map[string]string, len(tools)), toLocal: make(map[string]string, len(tools))}
	for _, t := range tools {
		w := sanitize(t.Name, limit)
		if _, taken := n.toLocal[w]; taken {
			w = hashed(t.Name, limit)
			n.clashes += "/" + w
		}
		n.toWire[t.Name], n.toLocal[w] = w, t.Name
	}
	return n
}

// Wire is the provider's name of a tool. A tool that is not offered any more
// may still be in the history.
func (n *Names) Wire(name string) string {
	if w, ok := n.toWire[name]; ok {
		return w
	}
	return sanitize(name, n.limit)
}

// Clashes identifies what the mapping owes to the other tools of the request
// and not to each name alone; it is nearly always "". A memo of encoded calls
// must not outlive it.
func (n *Names) Clashes() string { return n.clashes }

// Local is our name of a tool that the provider named.
func (n *Names) Local(name string) string {
	if l, ok := n.toLocal[name]; ok {
		return l
	}
	return name
}

func allowed(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func sanitize(name string, limit int) string {
	if w := mapped(name); w != "" && len(w) <= limit {
		return w
	}
	return hashed(name, limit)
}

// mapped has an underscore for each character that is not allowed.
func mapped(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && allowed(byte(r)) {
			return r
		}
		return '_'
	}, name)
}

func hashed(name string, limit int) string {
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	w := mapped(name)
	return w[:min(len(w), limit-len(tail))] + tail
}
