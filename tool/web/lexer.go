package web

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

type tokenKind int

const (
	textToken tokenKind = iota
	startTag
	endTag
)

// token is a piece of a page: a stretch of text, or a tag.
type token struct {
	kind tokenKind
	// text is what stands between tags, without its entities. A long one comes in
	// several pieces, none of which ends within a character.
	text string
	// name is the tag's, in lower case; element is 0 for a name of no element.
	name    string
	element atom.Atom
	attributes
	// closed says that the tag ends itself, as <x/> does.
	closed bool
}

const (
	// maxPiece bounds a piece of text, maxName what is kept of a tag's name, and
	// maxValue what is kept of an attribute's value, each in bytes.
	maxPiece = 4 << 10
	maxName  = 64
	maxValue = 64 << 10
)

// lexer takes a page apart as HTML's tokenizer does, and keeps no more of it than
// one piece: what a browser shows nothing of (comments, scripts, attributes that
// say nothing about text) is passed over while it comes. A tokenizer that keeps
// them takes up to sixty bytes for each byte of a page that is made for that.
type lexer struct {
	r *bufio.Reader
	// verbatim is the element in which no tag but its own end is one.
	verbatim atom.Atom
	// foreign says that the reader is within SVG or MathML, where CDATA is text.
	foreign bool
	// piece is text that was read and not given yet; open says that the "<" of a
	// tag or a comment was read behind it.
	piece []byte
	open  bool
}

func newLexer(page io.Reader) *lexer { return &lexer{r: bufio.NewReaderSize(page, 16<<10)} }

// next is the next token; its error is that of the page, io.EOF at the end.
func (l *lexer) next() (token, error) {
	for {
		if !l.open {
			if text, err := l.text(); text != "" || err != nil {
				return token{text: text}, err
			}
		}
		l.open, l.verbatim = false, 0
		t, found, err := l.markup()
		if found || err != nil {
			return t, err
		}
	}
}

// text reads what comes before the next tag or comment, or a piece of it.
func (l *lexer) text() (string, error) {
	for {
		stretch, err := l.r.ReadSlice('<')
		l.piece = append(l.piece, stretch...)
		if err == nil && l.marksUp() {
			l.open = true
			return l.take(len(l.piece)-len("<"), len("<")), nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			if len(l.piece) > 0 {
				err = nil
			}
			return l.take(len(l.piece), 0), err
		}
		if len(l.piece) >= maxPiece {
			return l.take(l.whole(), 0), nil
		}
	}
}

// take gives the first bytes of the piece as text and drops so many behind them.
func (l *lexer) take(n, drop int) string {
	text := l.decoded(l.piece[:n])
	l.piece = l.piece[:copy(l.piece, l.piece[n+drop:])]
	return text
}

// whole is how much of the piece can be given: a last character or entity, or a
// line break, may go on.
func (l *lexer) whole() int {
	n := len(wholeRunes(l.piece))
	if at := bytes.LastIndexByte(l.piece[:n], '&'); at > 0 && n-at < maxEntity {
		n = at
	}
	return len(bytes.TrimRight(l.piece[:n], "\r"))
}

// maxEntity is more than the length of any entity.
const maxEntity = 40

func (l *lexer) decoded(piece []byte) string {
	text := string(piece)
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	if l.verbatim == 0 || l.verbatim == atom.Title || l.verbatim == atom.Textarea {
		text = html.UnescapeString(text)
	}
	return text
}

// marksUp says that the "<" which was just read begins a tag or a comment.
func (l *lexer) marksUp() bool {
	if l.verbatim != 0 {
		return l.verbatim != atom.Plaintext && l.ends(l.verbatim)
	}
	b, _ := l.r.Peek(2)
	return len(b) > 0 && (isLetter(b[0]) || b[0] == '!' || b[0] == '?' || b[0] == '/' && len(b) > 1)
}

// ends says that the end tag of an element follows a "<" that was just read.
func (l *lexer) ends(element atom.Atom) bool { return l.follows("/"+element.String(), true) }

// follows says that a text comes next, in capitals or not; as a tag's name it
// must end there.
func (l *lexer) follows(text string, name bool) bool {
	n := len(text)
	if name {
		n++
	}
	b, _ := l.r.Peek(n)
	return len(b) == n && strings.EqualFold(string(b[:len(text)]), text) && (!name || isSpace(b[n-1]) || b[n-1] == '/' || b[n-1] == '>')
}

// markup reads a tag whose "<" was read, or passes over what is none.
func (l *lexer) markup() (t token, found bool, err error) {
	c, err := l.r.ReadByte()
	switch {
	case err != nil:
	case isLetter(c):
		t.kind = startTag
		err = l.tag(&t, c)
		return t, err == nil, err
	case c == '/':
		c, err = l.r.ReadByte()
		switch {
		case err != nil || c == '>':
		case isLetter(c):
			t.kind = endTag
			err = l.tag(&t, c)
			return t, err == nil, err
		default:
			_ = l.r.UnreadByte()
			err = l.past(">")
		}
	case c == '!' && l.follows("--", false):
		_, _ = l.r.Discard(len("--"))
		err = l.comment()
	case c == '!' && l.foreign && l.follows("[CDATA[", false):
		err = l.past("]]>")
	default:
		err = l.past(">")
	}
	return t, false, err
}

// past reads to the end of a text that ends with ">".
func (l *lexer) past(text string) error {
	var last [8]byte
	for {
		c, err := l.r.ReadByte()
		if err != nil {
			return err
		}
		copy(last[:], last[1:])
		if last[len(last)-1] = c; c == '>' && bytes.HasSuffix(last[:], []byte(text)) {
			return nil
		}
	}
}

// comment reads to the end of a comment whose "<!--" was read: "-->", "--!>", or
// just the rest of it where nothing came between.
func (l *lexer) comment() error {
	dashes, bang, begins := 2, false, true
	for {
		c, err := l.r.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '>' && (dashes >= 2 || bang):
			return nil
		case c == '-':
			if bang {
				dashes = 0
			}
			dashes, bang = dashes+1, false
			continue
		}
		bang = c == '!' && dashes >= 2 && !begins
		dashes, begins = 0, false
	}
}

// skip passes over the content of an element that no browser shows, up to its end
// tag or the end of the page.
func (l *lexer) skip(element atom.Atom) error {
	if element == atom.Script {
		return l.skipScript()
	}
	for {
		_, err := l.r.ReadSlice('<')
		if err == nil && l.ends(element) {
			_, _, err = l.markup()
			return err
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}

// skipScript passes over a script. What looks like a comment in one may hold
// another script with its end.
func (l *lexer) skipScript() error {
	const name = "script"
	dashes, escaped, twice := 0, false, false
	for {
		c, err := l.r.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '-':
			dashes++
			continue
		case c == '>' && dashes >= 2:
			escaped, twice = false, false
		case c == '<' && !escaped && l.follows("!--", false):
			_, _ = l.r.Discard(len("!--"))
			escaped, dashes = true, 2
			continue
		case c == '<' && l.ends(atom.Script):
			if !twice {
				_, _, err = l.markup()
				return err
			}
			twice = false
		case c == '<' && escaped && l.follows(name, true):
			twice = true
		}
		dashes = 0
	}
}

// tag reads a tag whose first letter was read.
func (l *lexer) tag(t *token, first byte) error {
	name := []byte{first | 0x20}
	c, err := l.r.ReadByte()
	for ; err == nil && !isSpace(c) && c != '/' && c != '>'; c, err = l.r.ReadByte() {
		if len(name) < maxName {
			name = append(name, lower(c))
		}
	}
	if err != nil {
		return err
	}
	if t.element = atom.Lookup(name); t.element != 0 {
		t.name = t.element.String()
	} else {
		t.name = string(name)
	}
	_ = l.r.UnreadByte()
	t.closed, err = l.attributes(&t.attributes)
	return err
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' }
