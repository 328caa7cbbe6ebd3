package resolve

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command, as far as it is known before the command runs.
type word struct {
	// text is the value of a static word, and the source of any other.
	text string
	// computed reports that the value comes from an expansion.
	computed bool
	// prefix is the beginning of a computed word that does not depend on the expansion.
	prefix string
	// glob reports that the only expansion is one of file names.
	glob bool
	// names is the pattern of such names, without quotes.
	names string
	// several reports that the word may become several words, or none.
	several bool
}

// is reports whether a word is certainly one of some texts.
func (w word) is(texts ...string) bool { return !w.computed && slices.Contains(texts, w.text) }

// wordOf returns the shell's interpretation of a word. A word that two shells interpret
// differently counts as computed.
func wordOf(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	out := word{several: severalOf(w)}
	var value strings.Builder
	static := true
	for i, part := range w.Parts {
		text, ok := partOf(part)
		if ok && static {
			if lit, bare := part.(*syntax.Lit); bare {
				switch special := expands(lit.Value, i == 0); special {
				case literal:
				case globs:
					out.glob, out.computed, out.several = true, true, true
				default:
					ok, out.several = false, true
				}
			}
		}
		if !ok {
			out.glob = false
			static, out.computed = false, true
			continue
		}
		if static {
			value.WriteString(text)
		}
	}
	out.text = value.String()
	if out.computed {
		out.prefix = out.text
		if out.glob {
			out.names = out.text
			out.prefix = out.text[:strings.IndexAny(out.text+"*", "*?[")]
		}
		out.text = source(w)
	}
	return out
}

// severalOf reports whether an expansion in a word may become several words: it is not
// quoted, or it is the list of all arguments.
func severalOf(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if slices.ContainsFunc(p.Parts, allArguments) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// allArguments reports whether an expansion becomes several words even inside quotes.
func allArguments(part syntax.WordPart) bool {
	p, ok := part.(*syntax.ParamExp)
	return ok && (p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Excl)
}

// source returns a word as it was written.
func source(w *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, w); err != nil {
		return "?"
	}
	return b.String()
}

// partOf returns the value of a part of a word that needs no expansion.
func partOf(part syntax.WordPart) (string, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(p.Value, func(byte) bool { return true }), true
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				return "", false
			}
			b.WriteString(unescape(lit.Value, func(c byte) bool { return strings.IndexByte("$`\"\\", c) >= 0 }))
		}
		return b.String(), !p.Dollar
	}
	return "", false
}

// unescape removes the backslashes that quote a character.
func unescape(s string, quotes func(byte) bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch next := s[i+1]; {
			case next == '\n':
				i++
				continue
			case quotes(next):
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

type expansion int

const (
	literal expansion = iota
	globs
	others
)

// expands returns how a shell expands an unquoted part of a word.
func expands(s string, first bool) expansion {
	kind := literal
	if first && strings.HasPrefix(s, "~") {
		return others
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?':
			kind = globs
		case '[':
			if strings.Contains(s[i:], "]") {
				kind = globs
			}
		case '{', '}':
			return others
		case '~':
			if i > 0 && (s[i-1] == '=' || s[i-1] == ':') {
				return others
			}
		}
	}
	return kind
}
