package web

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// attributes are what a tag says that bears on text. The first one of a name
// counts.
type attributes struct {
	href, alt string
	// conceals says that the page hides the element from its readers.
	conceals bool
	// opened says that a dialog is shown.
	opened bool
}

// known are the attributes that are read; all others are passed over.
var known = []string{"href", "alt", "hidden", "aria-hidden", "style", "open", "popover"}

// attributes reads the rest of a tag whose name was read, and says whether it
// closes itself.
func (l *lexer) attributes(a *attributes) (closed bool, err error) {
	seen := make([]string, 0, len(known))
	for {
		c, err := l.r.ReadByte()
		switch {
		case err != nil:
			return false, err
		case c == '>':
			return closed, nil
		case isSpace(c) || c == '/':
			closed = c == '/'
			continue
		}
		key, err := l.key(c)
		if err != nil {
			return false, err
		}
		closed = false
		matters := slices.Contains(known, key) && !slices.Contains(seen, key)
		value, whole, err := l.value(matters)
		if err != nil {
			return false, err
		}
		if matters {
			seen = append(seen, key)
			a.set(key, value, whole)
		}
	}
}

// key reads the name of an attribute; of a long one only as much as tells it
// from those that are known.
func (l *lexer) key(first byte) (string, error) {
	key := [16]byte{lower(first)}
	for n := 1; ; n++ {
		c, err := l.r.ReadByte()
		if err != nil {
			return "", err
		}
		if isSpace(c) || c == '/' || c == '>' || c == '=' {
			return string(key[:min(n, len(key))]), l.r.UnreadByte()
		}
		if n < len(key) {
			key[n] = lower(c)
		}
	}
}

// value reads what is assigned to an attribute, if anything is, and keeps it
// where it matters; whole says that all of it was kept.
func (l *lexer) value(matters bool) (value string, whole bool, err error) {
	c, err := l.pastSpace()
	if err != nil || c != '=' {
		return "", true, l.back(err)
	}
	quote, err := l.pastSpace()
	if err != nil || quote == '>' {
		return "", true, l.back(err)
	}
	var kept []byte
	whole = true
	keep := func(c byte) {
		switch {
		case !matters:
		case len(kept) < maxValue:
			kept = append(kept, c)
		default:
			whole = false
		}
	}
	quoted := quote == '"' || quote == '\''
	if !quoted {
		keep(quote)
	}
	for {
		c, err := l.r.ReadByte()
		switch {
		case err != nil:
			return "", false, err
		case quoted && c == quote:
			return unescaped(string(kept)), whole, nil
		case !quoted && (isSpace(c) || c == '>'):
			return unescaped(string(kept)), whole, l.r.UnreadByte()
		}
		keep(c)
	}
}

// back gives the last byte back, unless there was none.
func (l *lexer) back(err error) error {
	if err != nil {
		return err
	}
	return l.r.UnreadByte()
}

// pastSpace is the next byte that is no white space.
func (l *lexer) pastSpace() (byte, error) {
	for {
		if c, err := l.r.ReadByte(); err != nil || !isSpace(c) {
			return c, err
		}
	}
}

// unescaped is an attribute's value without its entities. One without a
// semicolon is none where a name goes on behind it: ?a=1&copy=2 copies nothing.
func unescaped(value string) string {
	first, rest, found := strings.Cut(value, "&")
	if !found {
		return value
	}
	var b strings.Builder
	b.WriteString(first)
	for part := range strings.SplitSeq(rest, "&") {
		n := strings.IndexFunc(part, func(r rune) bool { return r != '#' && !isNameByte(r) })
		if n < 0 {
			n = len(part)
		}
		name, after := part[:n], part[n:]
		after, ended := strings.CutPrefix(after, ";")
		reference := "&" + name
		if ended {
			reference += ";"
		}
		if plain := html.UnescapeString(reference); strings.HasPrefix(name, "#") || !ended && !strings.HasPrefix(after, "=") && wholly(plain, name) || ended && wholly(plain, name+";") {
			reference = plain
		}
		b.WriteString(reference)
		b.WriteString(after)
	}
	return b.String()
}

func isNameByte(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// wholly says that an entity was read up to its end, and not just its beginning.
func wholly(plain, name string) bool {
	return name == "semi;" || plain != "" && !strings.HasSuffix(plain, name[max(len(name)-1, 0):])
}

func (a *attributes) set(key, value string, whole bool) {
	switch key {
	case "href":
		// What is longer than any address that is fetched leads nowhere.
		if whole {
			a.href = value
		}
	case "alt":
		a.alt = value
	case "open":
		a.opened = true
	case "hidden", "popover":
		a.conceals = true
	case "aria-hidden":
		a.conceals = a.conceals || strings.EqualFold(strings.TrimSpace(value), "true")
	case "style":
		a.conceals = a.conceals || !whole || hides(value)
	}
}

// hides says that a style shows nothing of an element.
func hides(style string) bool {
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		property, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(declaration), "!important"), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(property) {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "opacity", "font-size":
			if n, err := strconv.ParseFloat(strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%"), 64); err == nil && n <= 0 {
				return true
			}
		}
	}
	return false
}
