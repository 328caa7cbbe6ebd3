package web

import (
	"errors"

	"golang.org/x/net/html/atom"
)

// element is an element of a page whose end has not come.
type element struct {
	name string
	atom atom.Atom
	// hides says that nothing in it is shown, shown that it is.
	hides, shown bool
	// foreign says that it is of SVG or MathML, html that its content is HTML
	// all the same.
	foreign, html bool
	// cells counts those of a row.
	cells int
	// formats are the formatting elements and the link that were opened in it
	// and are not closed, where those before it do not reach into it.
	formats *formats
}

// maxDepth bounds how deep elements are nested, as parsers do.
const maxDepth = 512

var errTooDeep = errors.New("its elements are nested deeper than 512")

// elements are those that are open, the innermost one last. Which end with which
// tag is what HTML says of pages that leave end tags out; no more is kept of a page.
type elements struct {
	open []element
	// hiding counts the open elements that hide what is in them, verbatim those
	// in which white space stands as it is.
	hiding, verbatim int
	// apart counts the open elements that keep formatting to themselves.
	apart int
	// number counts the open elements of HTML of each kind.
	number map[atom.Atom]int
	// closed is told of each element that ends, the innermost one first.
	closed func(element)
}

type set map[atom.Atom]bool

func of(atoms ...atom.Atom) set {
	s := set{}
	for _, a := range atoms {
		s[a] = true
	}
	return s
}

func (s set) and(more ...atom.Atom) set {
	all := of(more...)
	for a := range s {
		all[a] = true
	}
	return all
}

// These are the kinds of elements by which HTML decides what a tag ends.
var (
	// boundaries are not left by an end tag of something around them.
	boundaries       = of(atom.Applet, atom.Caption, atom.Table, atom.Td, atom.Th, atom.Marquee, atom.Object, atom.Template)
	buttonBoundaries = boundaries.and(atom.Button)
	listBoundaries   = boundaries.and(atom.Ol, atom.Ul)
	tableBoundaries  = of(atom.Table, atom.Template)
	// secluded keep the formatting around them out.
	secluded = of(atom.Applet, atom.Caption, atom.Td, atom.Th, atom.Marquee, atom.Object, atom.Template)

	headings = of(atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
	// blocks end a paragraph when they begin, and all within them when they end.
	blocks = headings.and(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Dd, atom.Details, atom.Dialog, atom.Dir,
		atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hgroup, atom.Hr, atom.Li,
		atom.Listing, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Plaintext, atom.Pre, atom.Search, atom.Section, atom.Summary, atom.Table, atom.Ul, atom.Xmp)
	// special are not left by the end tag of a common element.
	special = blocks.and(atom.Applet, atom.Button, atom.Caption, atom.Marquee, atom.Object, atom.Select, atom.Tbody, atom.Td, atom.Template,
		atom.Textarea, atom.Tfoot, atom.Th, atom.Thead, atom.Title, atom.Tr)
	// passing are those special ones that stand between an item and its list.
	passing = of(atom.Address, atom.Div, atom.P)
	// void have no content.
	void = of(atom.Area, atom.Base, atom.Basefont, atom.Bgsound, atom.Br, atom.Col, atom.Embed, atom.Frame, atom.Hr, atom.Img, atom.Image, atom.Input,
		atom.Keygen, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)
	rows     = of(atom.Tbody, atom.Thead, atom.Tfoot)
	rubies   = of(atom.Rb, atom.Rt, atom.Rtc, atom.Rp)
	preserve = of(atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext, atom.Textarea)
	// leaving are the elements of HTML that end SVG and MathML when they begin.
	leaving = headings.and(atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Em,
		atom.Embed, atom.Head, atom.Hr, atom.I, atom.Img, atom.Li, atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby,
		atom.S, atom.Small, atom.Span, atom.Strong, atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul, atom.Var)
	// holding are the foreign elements whose content is HTML.
	holding = map[string]bool{
		"foreignobject": true, "desc": true, "title": true, "annotation-xml": true, "mi": true, "mo": true, "mn": true, "ms": true, "mtext": true,
	}
)

func (s *elements) push(e element) error {
	if len(s.open) == maxDepth {
		return errTooDeep
	}
	s.open = append(s.open, e)
	s.count(e, 1)
	return nil
}

func (s *elements) count(e element, by int) {
	if !e.foreign {
		s.number[e.atom] += by
	}
	if e.hides {
		s.hiding += by
	}
	if preserve[e.atom] {
		s.verbatim += by
	}
	if e.formats != nil {
		s.apart += by
	}
}

// cut ends all elements from the one at i on; none where i is negative.
func (s *elements) cut(i int) {
	for i >= 0 && len(s.open) > i {
		e := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		s.count(e, -1)
		s.closed(e)
	}
}

// find is where the innermost element is that is one of wanted, -1 where there is
// none within the innermost boundary.
func (s *elements) find(wanted, boundary set) int {
	for i := len(s.open) - 1; i >= 0; i-- {
		e := s.open[i]
		if !e.foreign && wanted[e.atom] {
			return i
		}
		if !e.foreign && boundary[e.atom] || e.foreign && e.html {
			return -1
		}
	}
	return -1
}

func (s *elements) one(a atom.Atom, boundary set) int {
	if s.number[a] == 0 {
		return -1
	}
	return s.find(set{a: true}, boundary)
}

// top is the innermost open element.
func (s *elements) top() element {
	if len(s.open) == 0 {
		return element{}
	}
	return s.open[len(s.open)-1]
}

// foreign says that what comes next is SVG or MathML.
func (s *elements) foreign() bool {
	top := s.top()
	return top.foreign && !top.html
}

// endForeign ends the element of SVG or MathML that has a name, if one is open.
func (s *elements) endForeign(name string) bool {
	for i := len(s.open) - 1; i >= 0 && s.open[i].foreign; i-- {
		if s.open[i].name == name {
			s.cut(i)
			return true
		}
	}
	return false
}

// leave ends the SVG or MathML that a tag of HTML breaks out of.
func (s *elements) leave() {
	i := len(s.open)
	for i > 0 && s.open[i-1].foreign && !s.open[i-1].html {
		i--
	}
	s.cut(i)
}

// implied ends what the beginning of an element of HTML ends, and says whether
// the element may stand where it does.
func (s *elements) implied(a atom.Atom) bool {
	switch {
	case a == atom.Li:
		s.cut(s.item(set{a: true}))
	case a == atom.Dd || a == atom.Dt:
		s.cut(s.item(set{atom.Dd: true, atom.Dt: true}))
	case a == atom.Button:
		s.cut(s.one(a, boundaries))
	case a == atom.Option:
		s.endTop(set{a: true})
	case a == atom.Optgroup:
		s.endTop(set{atom.Option: true})
		s.endTop(set{a: true})
	case rubies[a]:
		s.endTop(rubies)
	case a == atom.Td || a == atom.Th || a == atom.Tr || rows[a] || a == atom.Caption || a == atom.Colgroup:
		return s.inTable(a)
	}
	if blocks[a] {
		s.cut(s.one(atom.P, buttonBoundaries))
	}
	if headings[a] {
		s.endTop(headings)
	}
	return true
}

func (s *elements) endTop(which set) {
	if which[s.top().atom] {
		s.cut(len(s.open) - 1)
	}
}

// item is where the item of a list is that another one ends.
func (s *elements) item(which set) int {
	for i := len(s.open) - 1; i >= 0; i-- {
		switch e := s.open[i]; {
		case which[e.atom]:
			return i
		case special[e.atom] && !passing[e.atom] || e.foreign:
			return -1
		}
	}
	return -1
}

// inTable ends what a part of a table ends; outside a table there is none.
func (s *elements) inTable(a atom.Atom) bool {
	around := set{atom.Table: true}
	switch a {
	case atom.Td, atom.Th:
		around = rows.and(atom.Table, atom.Tr)
	case atom.Tr:
		around = rows.and(atom.Table)
	}
	i := s.find(around, tableBoundaries)
	if i < 0 {
		return false
	}
	s.cut(i + 1)
	return true
}

// end ends what an end tag of HTML ends, and says whether it ended anything.
func (s *elements) end(name string, a atom.Atom) bool {
	i := -1
	switch {
	case a == atom.P:
		i = s.one(a, buttonBoundaries)
	case a == atom.Li:
		i = s.one(a, listBoundaries)
	case headings[a]:
		i = s.find(headings, boundaries)
	case a == atom.Template:
		i = s.one(a, nil)
	case a == atom.Table || a == atom.Tr || a == atom.Td || a == atom.Th || a == atom.Caption || rows[a]:
		i = s.one(a, tableBoundaries)
	case blocks[a] || secluded[a] || a == atom.Button || a == atom.Select:
		i = s.one(a, boundaries)
	default:
		i = s.common(name)
	}
	s.cut(i)
	return i >= 0
}

// common is where the element of an end tag is that ends nothing special.
func (s *elements) common(name string) int {
	for i := len(s.open) - 1; i >= 0; i-- {
		e := s.open[i]
		if e.name == name {
			return i
		}
		if !e.foreign && special[e.atom] {
			return -1
		}
	}
	return -1
}
