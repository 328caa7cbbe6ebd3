package web

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// reduce gives the text of an HTML page with its links, headings and lists, as
// a person reads it: what a page does not show is left out, because whoever
// hides text in a page does not hide it from people for their sake. It gives no
// more than the limit and says whether there was more: each short link of a
// page leads to an address that may be as long as the page's own.
//
// The page is read as it comes, and nothing of it is kept but its text and the
// elements that are open, so that no page takes more memory than its text.
func reduce(page io.Reader, how reading) (text string, cut bool, err error) {
	r := reducer{
		page: newLexer(page), outer: &formats{},
		writer: writer{base: how.base, b: longText{limit: int(how.limit), room: how.room}},
	}
	r.elements = elements{number: map[atom.Atom]int{}, closed: r.ended}
	for !r.full && err == nil {
		if err = r.step(); err == nil {
			err = r.b.err
		}
	}
	switch {
	case errors.Is(err, errTooDeep):
		return "", false, &tool.Error{Type: event.ErrorTool, Err: err, Message: fmt.Sprintf("the page cannot be read as HTML (%v); source gives it as it is", err)}
	case err != nil && err != io.EOF:
		return "", false, err
	}
	r.cut(0)
	r.finishLink()
	return strings.TrimSpace(r.b.String()), r.full, nil
}

// reducer reads a page and writes its text.
type reducer struct {
	page *lexer
	elements
	writer
	// outer are the formatting elements outside of every element that keeps
	// formatting to itself.
	outer *formats
	// hidden says that the page hides all of itself, body that its content has
	// begun.
	hidden, body bool
	// begins says that a line break which comes next is none.
	begins bool
}

// unseen are the elements that browsers show nothing of, skipped those of them whose
// content is no HTML.
var (
	skipped = of(atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes)
	unseen  = skipped.and(atom.Template, atom.Svg, atom.Object, atom.Canvas, atom.Audio, atom.Video, atom.Math, atom.Datalist)
)

// breaks are the line breaks around an element.
var breaks = map[atom.Atom]int{
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Table: 2, atom.Pre: 2,
	atom.Blockquote: 2, atom.Title: 2, atom.Hr: 2, atom.Dl: 2, atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2,
	atom.Div: 1, atom.Li: 1, atom.Tr: 1, atom.Dt: 1, atom.Dd: 1, atom.Br: 1, atom.Form: 1, atom.Fieldset: 1, atom.Figure: 1, atom.Figcaption: 1,
	atom.Details: 1, atom.Summary: 1, atom.Option: 1, atom.Caption: 1, atom.Address: 1, atom.Aside: 1,
}

// marks stand before the text of an element.
var marks = map[atom.Atom]string{
	atom.Title: "# ", atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ",
}

// step reads one token. The error is io.EOF at the end of the page.
func (r *reducer) step() error {
	r.page.foreign = r.foreign()
	t, err := r.page.next()
	if err != nil {
		return err
	}
	begins := r.begins
	r.begins = begins && t.kind == startTag && formatting[t.element]
	switch t.kind {
	case startTag:
		return r.start(t)
	case endTag:
		r.finish(t)
	default:
		if begins {
			t.text = strings.TrimPrefix(t.text, "\n")
		}
		if r.shows() {
			r.text(t.text, r.verbatim > 0)
		}
	}
	return nil
}

// shows says that text which comes now is shown.
func (r *reducer) shows() bool {
	f := r.formats()
	return !r.hidden && r.hiding == 0 && f.hiding == 0 && !f.linkHides
}

// formats are the formatting elements that reach to here.
func (r *reducer) formats() *formats {
	if r.apart > 0 {
		for i := len(r.open) - 1; i >= 0; i-- {
			if f := r.open[i].formats; f != nil {
				return f
			}
		}
	}
	return r.outer
}

func (r *reducer) start(t token) error {
	if r.foreign() {
		if !leaving[t.element] {
			return r.startForeign(t)
		}
		r.leave()
	}
	switch a := t.element; {
	case a == atom.Html || a == atom.Head || a == atom.Body || a == atom.Frameset:
		r.whole(t)
	case skipped[a]:
		return r.page.skip(a)
	case formatting[a]:
		r.formats().begin(a, t.conceals)
	case a == atom.A:
		r.startLink(t)
	case !r.implied(a):
	case void[a]:
		r.startVoid(t)
	default:
		return r.startElement(t)
	}
	return nil
}

// whole takes note of a tag that is about the page as a whole.
func (r *reducer) whole(t token) {
	switch t.element {
	case atom.Frameset:
		// The pages of its frames stand in the place of its own content.
		r.hidden = r.hidden || !r.body
	case atom.Body:
		r.body = true
		fallthrough
	case atom.Html:
		r.hidden = r.hidden || t.conceals
	}
}

func (r *reducer) startForeign(t token) error {
	if t.closed {
		return nil
	}
	return r.push(element{name: t.name, atom: t.element, hides: t.conceals, foreign: true, html: holding[t.name]})
}

func (r *reducer) startVoid(t token) {
	if t.conceals || !r.shows() {
		return
	}
	if r.mark == "" {
		r.breakLine(breaks[t.element])
	}
	if alt := strings.TrimSpace(t.alt); alt != "" && (t.element == atom.Img || t.element == atom.Image) {
		r.text("[image: "+alt+"]", r.verbatim > 0)
	}
	r.breakLine(breaks[t.element])
}

func (r *reducer) startElement(t token) error {
	a := t.element
	e := element{name: t.name, atom: a, hides: t.conceals || unseen[a] || a == atom.Dialog && !t.opened, foreign: a == atom.Svg || a == atom.Math}
	if e.foreign && t.closed {
		return nil
	}
	e.shown = r.shows() && !e.hides
	if secluded[a] {
		outside := r.formats()
		e.formats = &formats{}
		// What hides text around a place hides it within.
		e.hides = e.hides || outside.hiding > 0 || outside.linkHides
	}
	if e.shown {
		r.appear(a)
	}
	if preserve[a] {
		r.begins = true
	}
	if a == atom.Title || a == atom.Textarea || a == atom.Xmp || a == atom.Plaintext {
		r.page.verbatim = a
	}
	return r.push(e)
}

// appear writes what stands before the text of an element.
func (r *reducer) appear(a atom.Atom) {
	if r.mark == "" {
		r.breakLine(breaks[a])
	}
	if a == atom.Td || a == atom.Th {
		if row := len(r.open) - 1; row >= 0 {
			if r.open[row].cells++; r.open[row].cells > 1 && r.lines == 0 {
				r.space = false
				r.raw(" | ")
			}
		}
	}
	if mark := marks[a]; mark != "" {
		r.mark = mark
	}
}

// ended writes what stands behind the text of an element.
func (r *reducer) ended(e element) {
	if e.formats != nil && e.formats.linked && !e.formats.linkHides {
		r.endLink()
	}
	if !e.shown {
		return
	}
	if marks[e.atom] != "" {
		r.mark = ""
	}
	r.breakLine(breaks[e.atom])
}

// startLink begins a link, which ends one that is open: no link is in another.
func (r *reducer) startLink(t token) {
	r.finishLink()
	f := r.formats()
	f.linked, f.linkHides = true, t.conceals
	if !t.conceals {
		r.beginLink(t.href)
	}
}

func (r *reducer) finishLink() {
	f := r.formats()
	if f.linked && !f.linkHides {
		r.endLink()
	}
	f.linked, f.linkHides = false, false
}

func (r *reducer) finish(t token) {
	a := t.element
	if r.foreign() {
		if a != atom.P && a != atom.Br {
			if r.endForeign(t.name) {
				return
			}
		} else {
			r.leave()
		}
	}
	switch {
	case a == atom.Html || a == atom.Head || a == atom.Body:
	case formatting[a]:
		r.formats().end(a)
	case a == atom.A:
		r.finishLink()
	case a == atom.Br:
		r.startVoid(t)
	case !r.end(t.name, a) && a == atom.P && r.shows():
		r.breakLine(breaks[a])
	}
}
