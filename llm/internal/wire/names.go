package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
)

// Names maps tool names, which contain dots, to names that a provider accepts, and
// back. A hash distinguishes names that would become equal.
type Names struct {
	limit   int
	clashes string
	toWire  map[string]string
	toLocal map[string]string
}

// NewNames maps the names of the tools that a request offers. limit is the provider's
// limit on the length.
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

// Wire returns the provider's name of a tool. The conversation may contain tools that
// are no longer offered.
func (n *Names) Wire(name string) string {
	if w, ok := n.toWire[name]; ok {
		return w
	}
	return sanitize(name, n.limit)
}

// Clashes identifies the part of the mapping that depends on the other tools of the
// request; it is nearly always "". A cache of encoded calls must not outlive it.
func (n *Names) Clashes() string { return n.clashes }

// Local returns our name of a tool that the provider named.
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

// mapped replaces each character that is not allowed by an underscore.
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

// NameCache caches the last mapping, because a run offers the same tools with every
// request. The zero value is ready for use and safe for concurrent use.
type NameCache struct{ last atomic.Pointer[cachedNames] }

type cachedNames struct {
	limit int
	of    []string
	names *Names
}

// For is [NewNames] with a cache.
func (c *NameCache) For(tools []llm.ToolDef, limit int) *Names {
	if last := c.last.Load(); last != nil && last.fits(tools, limit) {
		return last.names
	}
	fresh := &cachedNames{limit: limit, of: make([]string, len(tools)), names: NewNames(tools, limit)}
	for i, t := range tools {
		fresh.of[i] = t.Name
	}
	c.last.Store(fresh)
	return fresh.names
}

func (c *cachedNames) fits(tools []llm.ToolDef, limit int) bool {
	if limit != c.limit || len(tools) != len(c.of) {
		return false
	}
	for i := range tools {
		if tools[i].Name != c.of[i] {
			return false
		}
	}
	return true
}
