package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// reduce returns the text of an HTML page with its links, headings and lists, as a
// person reads it. It leaves out hidden text, because text that a page hides from
// people is usually meant to mislead programs. It returns at most limit bytes and
// reports whether there was more: each short link of a page has an address that may
// be as long as the page's own. A long page waits for its turn until ctx ends.
func reduce(ctx context.Context, page string, base *url.URL, limit int64, places *PageLimit) (text string, cut bool, err error) {
	if len(page) > smallPage {
		leave, err := places.take(ctx)
		if err != nil {
			return "", false, unreadable(ctx, err)
		}
		defer leave()
	}
	doc, err := html.Parse(newMarkup(ctx, strings.NewReader(page)))
	if err != nil {
		return "", false, unreadable(ctx, err)
	}
	w := writer{base: baseOf(doc, base), limit: int(limit)}
	w.node(doc)
	return strings.TrimSpace(w.b.String()), w.full, nil
}

// baseOf returns the base of a page's links: the first one that the page declares, or
// its own address.
func baseOf(doc *html.Node, page *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom != atom.Base || !has(n, "href") {
			continue
		}
		said, err := page.Parse(strings.TrimSpace(attribute(n, "href")))
		if err != nil {
			return page
		}
		to, err := check(said)
		if err != nil {
			return page
		}
		return to.url
	}
	return page
}

// unreadable returns the error of a page that was not read to its end. If its time was
// up, another attempt would take as long.
func unreadable(ctx context.Context, err error) error {
	e := &tool.Error{Type: event.ErrorTool, Err: err, Message: fmt.Sprintf("the page cannot be read as HTML (%v); source gives it as it is", err)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Type, e.Message = event.ErrorTimeout, "there was no time to read the page as HTML; source gives it as it is"
	}
	return e
}

// writer builds the text of a page. The parser bounds the depth of its recursion.
type writer struct {
	b    strings.Builder
	base *url.URL
	// limit bounds the text in bytes; full reports that there was more.
	limit int
	full  bool
	pre   bool
	// lines is the number of pending line breaks before the next text, space reports a
	// pending space.
	lines int
	space bool
	// mark precedes the next text.
	mark string
}

var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Iframe: true, atom.Object: true,
	atom.Canvas: true, atom.Audio: true, atom.Video: true, atom.Math: true, atom.Datalist: true,
}

// breaks are the line breaks around an element.
var breaks = map[atom.Atom]int{
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Table: 2, atom.Pre: 2,
	atom.Blockquote: 2, atom.Title: 2, atom.Hr: 2, atom.Dl: 2, atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2,
	atom.Div: 1, atom.Li: 1, atom.Tr: 1, atom.Dt: 1, atom.Dd: 1, atom.Br: 1, atom.Form: 1, atom.Fieldset: 1, atom.Figure: 1, atom.Figcaption: 1,
	atom.Details: 1, atom.Summary: 1, atom.Option: 1, atom.Caption: 1, atom.Address: 1, atom.Aside: 1,
}

// marks precede the text of an element.
var marks = map[atom.Atom]string{
	atom.Title: "# ", atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ",
}

func (w *writer) node(n *html.Node) {
	if w.full {
		return
	}
	switch n.Type {
	case html.TextNode:
		w.text(n.Data)
	case html.DocumentNode:
		w.children(n)
	case html.ElementNode:
		if unseen[n.DataAtom] || concealed(n.Attr) || n.DataAtom == atom.Dialog && !has(n, "open") {
			return
		}
		if w.mark == "" {
			w.lines = max(w.lines, breaks[n.DataAtom])
		}
		w.element(n)
		w.lines = max(w.lines, breaks[n.DataAtom])
	}
}

func (w *writer) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c)
	}
}

func (w *writer) element(n *html.Node) {
	switch n.DataAtom {
	case atom.A:
		w.link(n)
	case atom.Img:
		if alt := strings.TrimSpace(attribute(n, "alt")); alt != "" {
			w.text("[image: " + alt + "]")
		}
	case atom.Pre:
		outer := w.pre
		w.pre = true
		w.children(n)
		w.pre = outer
	case atom.Td, atom.Th:
		if n.PrevSibling != nil && w.lines == 0 {
			w.space = false
			w.raw(" | ")
		}
		w.children(n)
	default:
		if mark := marks[n.DataAtom]; mark != "" {
			w.mark = mark
		}
		w.children(n)
		if marks[n.DataAtom] != "" {
			w.mark = ""
		}
	}
}

// link writes the text of a link with its target, like Markdown; a link without text,
// or with a target that cannot be fetched, is written as its text alone.
func (w *writer) link(n *html.Node) {
	to := w.reference(attribute(n, "href"))
	if to == nil {
		w.children(n)
		return
	}
	inner := writer{base: w.base, limit: w.limit - w.b.Len(), pre: w.pre}
	inner.children(n)
	if shown := strings.TrimSpace(inner.b.String()); shown != "" {
		w.raw("[" + shown + "](" + w.address(to) + ")")
		w.space = inner.space
	}
	w.full = w.full || inner.full
}

// reference returns the target of a link, nil if it cannot be fetched. Its cost depends
// on the length of the link, not on that of the page's address.
func (w *writer) reference(href string) *url.URL {
	if href == "" || strings.HasPrefix(href, "#") {
		return nil
	}
	to, err := url.Parse(strings.TrimSpace(href))
	if err != nil {
		return nil
	}
	whole := *to
	whole.Scheme = cmp.Or(to.Scheme, w.base.Scheme)
	if to.Scheme == "" && to.Host == "" && to.User == nil {
		whole.Host = w.base.Host
	}
	if _, err := check(&whole); err != nil {
		return nil
	}
	return to
}

// address returns the address of a reference.
func (w *writer) address(to *url.URL) string {
	t, err := check(w.base.ResolveReference(to))
	if err != nil {
		return ""
	}
	return t.url.String()
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// concealed reports whether a page hides an element from its readers.
func concealed(attributes []html.Attribute) bool {
	for _, a := range attributes {
		switch a.Key {
		case "hidden", "popover":
			return true
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			if hides(a.Val) {
				return true
			}
		}
	}
	return false
}

// hides reports whether a style hides an element.
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
			n, err := strconv.ParseFloat(strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%"), 64)
			if err == nil && n <= 0 {
				return true
			}
		}
	}
	return false
}

// text writes visible text, with white space collapsed like HTML.
func (w *writer) text(s string) {
	s = strings.Map(visible, s)
	if w.pre {
		w.raw(s)
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		w.space = w.space || s != ""
		return
	}
	w.space = w.space || !strings.HasPrefix(s, words[0])
	for _, word := range words {
		w.raw(word)
		w.space = true
	}
	w.space = !strings.HasSuffix(s, words[len(words)-1])
}

// raw writes a piece of text after the pending breaks, as far as there is room.
func (w *writer) raw(s string) {
	if room := w.limit - w.b.Len() - w.lines - len(w.mark) - len(" "); len(s) > room {
		s, w.full = string(wholeRunes([]byte(s[:max(room, 0)]))), true
	}
	if s == "" {
		return
	}
	if w.b.Len() > 0 {
		switch {
		case w.lines > 0:
			w.b.WriteString("\n\n"[:min(w.lines, 2)])
		case w.space:
			w.b.WriteByte(' ')
		}
	}
	w.b.WriteString(w.mark)
	w.b.WriteString(s)
	w.lines, w.space, w.mark = 0, false, ""
}

// visible drops invisible characters that can carry text or reverse its direction.
func visible(r rune) rune {
	switch {
	case r >= 0xE0000 && r <= 0xE0FFF, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200B, r == 0x2060, r == 0xFEFF, r == 0xAD:
		return -1
	case unicode.IsControl(r) && r != '\n' && r != '\t':
		return ' '
	}
	return r
}
