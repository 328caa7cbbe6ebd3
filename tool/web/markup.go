package web

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// formatting are the elements that only change how text looks. HTML goes on
// with those that were not closed in each paragraph that follows, so a parser
// that is given them makes a tree of gigabytes from a page of kilobytes. Links
// are of that kind too, but of them no two are open at once.
var formatting = map[atom.Atom]bool{
	atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true, atom.S: true,
	atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// markup reads a page without its formatting elements. One that hides what is
// in it stays, as an element that ends with its paragraph. What is text here stays
// text: the inside of a style in a drawing is none for the parser.
type markup struct {
	tokens *html.Tokenizer
	// concealing says of the open formatting elements of each name whether they
	// hide what is in them, the innermost one last.
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

// tag puts in the place of a formatting tag what the parser is given of it.
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

// attributes are those of the tag whose name was read.
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

// stoppable reads until its context ends: a parser looks at none, and a page
// can be made to keep it busy for minutes.
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
