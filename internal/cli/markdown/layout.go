package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// narrowest is the least room that prose is given, deepest how many lists and
// quotations within each other are shown as such.
const (
	narrowest = 12
	deepest   = 8
)

// line is one line for the terminal.
type line struct {
	text string
	// open says that a mark in it may be closed by text that is still to come, which
	// would change how it looks.
	open bool
}

// layout turns blocks into lines.
type layout struct {
	source []byte
	width  int
	colour bool
	// gap says that an empty line stands before the first block, begun that blocks do.
	gap, begun bool

	lines  []line
	levels []*level
	// leaf is the line at which the last block begins that holds text itself, and
	// fence how many lines at its end are there only if the text ends here.
	leaf, fence int
	// last is the last of the outermost blocks.
	last struct {
		line, at int
		gap      bool
	}
}

// level is a list item or a quotation around a block: what stands before its first
// line and before each further one.
type level struct {
	first, rest string
	used        bool
}

// settled is how many lines stay as they are, whatever follows.
func (l *layout) settled(source string) int {
	until := len(l.lines) - l.fence
	if !strings.HasSuffix(source, "\n") && until > 0 {
		until--
	}
	for i := l.leaf; i < until; i++ {
		if l.lines[i].open {
			return i
		}
	}
	return until
}

func (l *layout) document(doc ast.Node) {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		before := n.PreviousSibling()
		gap := l.gap
		if before != nil {
			gap = l.apart(n)
		}
		if before == nil || n.Pos() > before.Pos() { // a table may begin where the text before it does
			l.last.line, l.last.at, l.last.gap = len(l.lines), n.Pos(), gap
		}
		if gap && (l.begun || before != nil) {
			l.empty()
		}
		l.block(n)
	}
}

// blocks lays out what stands within a list item or a quotation.
func (l *layout) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && l.apart(n) {
			l.empty()
		}
		l.block(n)
	}
}

// apart reports whether an empty line stands before a block.
func (l *layout) apart(n ast.Node) bool {
	if n.Pos() < 0 || n.Pos() == n.PreviousSibling().Pos() {
		return false
	}
	begin := bytes.LastIndexByte(l.source[:n.Pos()], '\n')
	if begin < 0 {
		return false
	}
	before := l.source[bytes.LastIndexByte(l.source[:begin], '\n')+1 : begin]
	return len(bytes.Trim(before, "> \t")) == 0
}

func (l *layout) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.List:
		l.list(n)
	case *ast.Blockquote:
		l.within(&level{first: l.paint(faint, "│ "), rest: l.paint(faint, "│ ")}, n)
	case *ast.FencedCodeBlock:
		l.fenced(n)
	case *ast.CodeBlock:
		l.begin()
		l.code(n, "    ")
	case *ast.ThematicBreak:
		l.begin()
		l.add(line{text: l.paint(faint, strings.Repeat("─", min(l.room(), 40)))})
	case *ast.Heading:
		l.begin()
		l.prose(append(glyphs(strings.Repeat("#", n.Level)+" ", bold), l.inline(n, bold)...))
	case *east.Table:
		l.begin()
		l.table(n)
	default:
		l.begin()
		l.prose(l.inline(n, plain))
	}
}

// begin notes that a block with text of its own begins.
func (l *layout) begin() { l.leaf, l.fence = len(l.lines), 0 }

func (l *layout) list(n *ast.List) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && item.HasBlankPreviousLines() {
			l.empty()
		}
		mark := string(rune(n.Marker)) + " "
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + mark
			number++
		}
		l.within(&level{first: mark, rest: strings.Repeat(" ", len(mark))}, item)
	}
}

func (l *layout) within(around *level, n ast.Node) {
	if len(l.levels) >= deepest {
		l.blocks(n)
		return
	}
	l.levels = append(l.levels, around)
	l.blocks(n)
	if !around.used {
		l.begin()
		l.add(line{})
	}
	l.levels = l.levels[:len(l.levels)-1]
}

func (l *layout) fenced(n *ast.FencedCodeBlock) {
	l.begin()
	opening, after := cutLine(l.source[max(n.Pos(), 0):])
	run := opening[:len(opening)-len(strings.TrimLeft(opening, opening[:min(1, len(opening))]))]
	l.add(line{text: l.paint(faint, harmless(opening))})
	l.code(n, "")
	if k := n.Lines().Len(); k > 0 {
		after = l.source[n.Lines().At(k-1).Stop:]
	}
	l.add(line{text: l.paint(faint, run)})
	if closing, _ := cutLine(after); run == "" || !strings.Contains(closing, run) {
		l.fence = 1
	}
}

func (l *layout) code(n ast.Node, indent string) {
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		text := strings.TrimRight(string(segment.Value(l.source)), "\n")
		l.add(line{text: l.paint(code, indent+harmless(text))})
	}
}

// empty adds a line without text.
func (l *layout) empty() { l.add(line{}) }

// add puts a line below the others, behind what stands around it.
func (l *layout) add(n line) {
	var before strings.Builder
	for _, v := range l.levels {
		if v.used {
			before.WriteString(v.rest)
		} else {
			before.WriteString(v.first)
			v.used = true
		}
	}
	if n.text = before.String() + n.text; !l.colour {
		n.text = strings.TrimRight(n.text, " ")
	}
	l.lines = append(l.lines, n)
}

// room is how many columns are left for text.
func (l *layout) room() int {
	room := l.width
	for _, v := range l.levels {
		room -= columnsPainted(v.rest)
	}
	return max(room, narrowest)
}

func (l *layout) paint(st style, text string) string {
	if !l.colour || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// cutLine splits a text behind its first line, whose end is left out.
func cutLine(b []byte) (first string, rest []byte) {
	text, after, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(text), []byte(after)
}
