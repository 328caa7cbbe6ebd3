package markdown

import (
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// style is how text stands out: the parameters of a terminal's SGR sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	italic style = "3"
	link   style = "4"
	struck style = "9"
	code   style = "36"
)

func (s style) and(other style) style {
	if s == plain {
		return other
	}
	return s + ";" + other
}

// glyph is one character.
type glyph struct {
	r  rune
	st style
	// raw reports that the character is shown as written, so it may be a mark that
	// is closed later.
	raw bool
}

func glyphs(text string, st style) []glyph {
	var out []glyph
	for _, r := range harmless(text) {
		out = append(out, glyph{r: r, st: st})
	}
	return out
}

// harmless removes what would control a terminal or move its cursor by more than
// one column at a time.
func harmless(text string) string {
	return strings.ReplaceAll(terminal.Harmless(text), "\t", "    ")
}

// inline returns the content of a block.
func (l *layout) inline(parent ast.Node, st style) []glyph {
	var out []glyph
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = append(out, l.text(n, st)...)
		case *ast.String:
			out = append(out, glyphs(string(n.Value), st)...)
		case *ast.CodeSpan:
			out = append(out, l.marked("`", code, st, n)...)
		case *ast.Emphasis:
			mark, as := "*", italic
			if n.Level > 1 {
				mark, as = "**", bold
			}
			out = append(out, l.marked(mark, as, st, n)...)
		case *east.Strikethrough:
			out = append(out, l.marked("~~", struck, st, n)...)
		case *ast.Link:
			out = append(out, l.link(n, string(n.Destination), st)...)
		case *ast.Image:
			out = append(out, l.link(n, string(n.Destination), st)...)
		case *ast.AutoLink:
			out = append(out, glyphs(string(n.Label(l.source)), st.and(link))...)
		default:
			out = append(out, l.inline(n, st)...)
		}
	}
	return out
}

func (l *layout) text(n *ast.Text, st style) []glyph {
	value := n.Segment.Value(l.source)
	_, isCode := n.Parent().(*ast.CodeSpan)
	if !isCode {
		value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
	}
	out := glyphs(strings.ReplaceAll(string(value), "\n", " "), st)
	for i := range out {
		out[i].raw = !isCode
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		// A model that writes a line break means one.
		out = append(out, glyph{r: '\n'})
	}
	return out
}

// marked returns emphasized text: with its style, or with its marks if there is no
// style.
func (l *layout) marked(mark string, as, st style, n ast.Node) []glyph {
	if l.colour {
		return l.inline(n, st.and(as))
	}
	out := append(glyphs(mark, st), l.inline(n, st)...)
	return append(out, glyphs(mark, st)...)
}

// link shows the target of a link, because the link's text may be different.
func (l *layout) link(n ast.Node, to string, st style) []glyph {
	label := l.inline(n, st.and(link))
	if textOf(label) == to || textOf(label) == strings.TrimPrefix(to, "mailto:") {
		return label
	}
	return append(label, glyphs(" ("+to+")", st.and(faint))...)
}

func textOf(text []glyph) string {
	var b strings.Builder
	for _, g := range text {
		b.WriteRune(g.r)
	}
	return b.String()
}

// open reports whether a mark is shown as written that later text may close.
func open(text []glyph) bool {
	raw := make([]rune, 0, len(text))
	for _, g := range text {
		if g.raw {
			raw = append(raw, g.r)
		}
	}
	for i, r := range raw {
		before, after := at(raw, i-1), at(raw, i+1)
		switch r {
		case '`', '|':
			return true
		case '*':
			if !unicode.IsSpace(before) || !unicode.IsSpace(after) {
				return true
			}
		case '_':
			if !letter(before) || !letter(after) {
				return true
			}
		case '~':
			if after == '~' {
				return true
			}
		case '[':
			if !follows(raw[i:], ']') {
				return true
			}
		case '(':
			if before == ']' && !follows(raw[i:], ')') {
				return true
			}
		case '&':
			if !unicode.IsSpace(after) && !follows(raw[i:], ';') {
				return true
			}
		case '<':
			if letter(after) && !follows(raw[i:], '>') {
				return true
			}
		}
	}
	return false
}

// at returns a character of a line, or a space outside it.
func at(text []rune, i int) rune {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func follows(text []rune, r rune) bool {
	for _, t := range text {
		if t == r {
			return true
		}
	}
	return false
}
