package web

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// formatting are the elements that only change how text looks. HTML reopens unclosed
// ones in each following paragraph, so a parser would make a tree of gigabytes from a
// page of kilobytes. Links are of that kind too, but no two links are open at once.
var formatting = map[atom.Atom]bool{
	atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true, atom.S: true,
	atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// markup tokenizes a page without its formatting elements. It keeps one that hides its
// content, as an element that ends with its paragraph. Raw text stays text: the content
// of a style in a drawing is not text for the parser.
type markup struct {
	tokens *html.Tokenizer
	// concealing records for the open formatting elements of each name whether they
	// hide their content, the innermost last.
	concealing map[atom.Atom][]bool
	rest       []byte
}

func newMarkup(ctx context.Context, page io.Reader) *markup {
	return &markup{tokens: html.NewTokenizer(&stoppable{ctx, page}), concealing: map[atom.Atom][]bool{}}
}

func (m *markup) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		kind := m.tokens.Next()
		if kind == html.ErrorToken {
			return 0, m.tokens.Err()
		}
		m.rest = append(m.rest[:0], m.tokens.Raw()...)
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			m.tag(kind)
		case html.TextToken:
			m.rest = bytes.ReplaceAll(m.rest, []byte("<"), []byte("&lt;"))
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// tag replaces a formatting tag by what the parser sees.
func (m *markup) tag(kind html.TokenType) {
	name, _ := m.tokens.TagName()
	element := atom.Lookup(name)
	if !formatting[element] {
		return
	}
	m.rest = m.rest[:0]
	open := m.concealing[element]
	if kind != html.EndTagToken {
		hides := concealed(m.attributes())
		m.concealing[element] = append(open, hides)
		if hides {
			m.rest = append(m.rest, "<span hidden>"...)
		}
		return
	}
	if last := len(open) - 1; last >= 0 {
		m.concealing[element] = open[:last]
		if open[last] {
			m.rest = append(m.rest, "</span>"...)
		}
	}
}

// attributes returns the attributes of the current tag.
func (m *markup) attributes() []html.Attribute {
	var all []html.Attribute
	for {
		key, value, more := m.tokens.TagAttr()
		all = append(all, html.Attribute{Key: string(key), Val: string(value)})
		if !more {
			return all
		}
	}
}

// stoppable reads until its context ends: the parser does not check contexts, and a
// page can keep it busy for minutes.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
