package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// narrowest is the least room for prose; deepest is how many nested lists and
// quotations are indented.
const (
	narrowest = 12
	deepest   = 8
)

// line is one line for the terminal.
type line struct {
	text string
	// open reports that later text may close a mark in the line, which would change
	// its look.
	open bool
}

// layout turns blocks into lines.
type layout struct {
	source []byte
	width  int
	colour bool
	// gap reports an empty line before the first block; begun reports that a block
	// has started.
	gap, begun bool

	lines  []line
	levels []*level
	// leaf is the line at which the last block with text starts. fence counts the
	// lines at its end that exist only if the text ends here.
	leaf, fence int
	// last is the last of the outermost blocks.
	last struct {
		line, at int
		gap      bool
	}
}

// level is a list item or a quotation around a block: the prefixes of its first
// line and of each further line.
type level struct {
	first, rest string
	used        bool
}

// settled returns how many lines no later text can change.
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
			gap = l.spaced(n)
		}
		if before == nil || n.Pos() > before.Pos() { // a table may start where the text before it starts
			l.last.line, l.last.at, l.last.gap = len(l.lines), n.Pos(), gap
		}
		if gap && (l.begun || before != nil) {
			l.empty()
		}
		l.block(n)
	}
}

// blocks lays out the content of a list item or a quotation.
func (l *layout) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && l.spaced(n) {
			l.empty()
		}
		l.block(n)
	}
}

// spaced reports whether an empty line precedes a block.
func (l *layout) spaced(n ast.Node) bool {
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

// begin marks the start of a block with its own text.
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

// add appends a line, with the prefixes of the levels around it.
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

// room returns how many columns are left for text.
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

// cutLine splits a text after its first line and drops the line break.
func cutLine(b []byte) (first string, rest []byte) {
	text, after, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(text), []byte(after)
}
