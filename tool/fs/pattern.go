package fs

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool/internal/search"
)

// compileGlob converts a glob to a regular expression, which takes linear time on any
// pattern, unlike a matcher with backtracking. A star matches any characters except a
// slash, a question mark one of them, [a-z] one of these characters and [!a-z] one of
// the others, {a,b} one of the alternatives, two stars as a whole part of the path any
// number of directories, and a backslash quotes the next character.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > search.MaxPattern {
		return nil, invalid("the pattern has %d bytes; at most %d are possible", len(pattern), search.MaxPattern)
	}
	g := globber{rest: pattern, start: true}
	err := g.translate()
	if err != nil {
		return nil, invalid("the pattern %s: %v", quote(pattern), err)
	}
	re, err := regexp.Compile(`\A(?s:` + g.out.String() + `)\z`)
	if err != nil {
		return nil, invalid("the pattern %s: %v", quote(pattern), err)
	}
	return re, nil
}

// globber translates a glob from left to right.
type globber struct {
	rest string
	out  strings.Builder
	// open counts the open braces.
	open int
	// start is true at the beginning of a part of the path.
	start bool
}

func (g *globber) translate() error {
	for g.rest != "" {
		start := g.start
		g.start = false
		switch c := g.rest[0]; {
		case start && strings.HasPrefix(g.rest, "**/"):
			g.take(3, `(?:[^/]+/)*`)
			g.start = true
		case start && strings.HasPrefix(g.rest, "**") && g.ends(g.rest[2:]):
			g.take(2, `.*`)
		case c == '*':
			g.take(len(g.rest)-len(strings.TrimLeft(g.rest, "*")), `[^/]*`)
		case c == '?':
			g.take(1, `[^/]`)
		case c == '/':
			g.take(1, `/`)
			g.start = true
		case c == '{':
			g.open++
			g.take(1, `(?:`)
			g.start = start
		case c == ',' && g.open > 0:
			g.take(1, `|`)
			g.start = true
		case c == '}' && g.open > 0:
			g.open--
			g.take(1, `)`)
		case c == '[':
			if err := g.class(); err != nil {
				return err
			}
		default:
			if err := g.literal(); err != nil {
				return err
			}
		}
	}
	if g.open > 0 {
		return errors.New("a { is not closed")
	}
	return nil
}

// ends reports whether the rest begins with the end of the pattern or of an
// alternative.
func (g *globber) ends(rest string) bool {
	return rest == "" || g.open > 0 && (rest[0] == ',' || rest[0] == '}')
}

func (g *globber) take(n int, expr string) {
	g.rest = g.rest[n:]
	g.out.WriteString(expr)
}

func (g *globber) literal() error {
	if g.rest[0] == '\\' {
		if g.rest = g.rest[1:]; g.rest == "" {
			return errors.New(`nothing follows the last \`)
		}
	}
	_, n := utf8.DecodeRuneInString(g.rest)
	g.take(n, regexp.QuoteMeta(g.rest[:n]))
	return nil
}

// class translates a bracket expression. A negated one does not match a slash.
func (g *globber) class() error {
	body, open := g.rest[1:], "["
	if strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^") {
		body, open = body[1:], "[^/"
	}
	var set strings.Builder
	for body != "" {
		if body[0] == ']' && set.Len() > 0 {
			g.rest = body[1:]
			g.out.WriteString(open + set.String() + "]")
			return nil
		}
		if isRange := body[0] == '-' && set.Len() > 0 && !strings.HasPrefix(body, "-]"); isRange {
			set.WriteByte('-')
			body = body[1:]
		}
		if strings.HasPrefix(body, `\`) && len(body) > 1 {
			body = body[1:]
		}
		_, n := utf8.DecodeRuneInString(body)
		if strings.ContainsAny(body[:n], `\[]^-&~`) {
			set.WriteByte('\\')
		}
		set.WriteString(body[:n])
		body = body[n:]
	}
	return errors.New("a [ is not closed")
}
