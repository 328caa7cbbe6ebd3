package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// between separates two cells.
const between = " │ "

// table lays out rows in columns if the screen is wide enough, and otherwise one
// row below another, wrapped. A column's width depends on all of its cells, so no
// line is settled before the table is complete.
func (l *layout) table(n *east.Table) {
	var rows [][][]glyph
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		st := plain
		if row.PreviousSibling() == nil {
			st = bold
		}
		var cells [][]glyph
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, l.inline(cell, st))
		}
		rows = append(rows, cells)
	}
	widths, total := columnWidths(rows)
	for i, row := range rows {
		if total > l.room() {
			l.prose(joined(row))
		} else {
			l.add(line{text: l.row(row, widths, n.Alignments)})
		}
		if i == 0 {
			l.add(line{text: l.paint(faint, rule(widths, total > l.room()))})
		}
	}
	for i := l.leaf; i < len(l.lines); i++ {
		l.lines[i].open = true
	}
}

func columnWidths(rows [][][]glyph) (widths []int, total int) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], terminal.Columns(textOf(cell)))
		}
	}
	for i, w := range widths {
		if total += w; i > 0 {
			total += terminal.Columns(between)
		}
	}
	return widths, total
}

func (l *layout) row(cells [][]glyph, widths []int, alignments []east.Alignment) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(l.paint(faint, between))
		}
		space := strings.Repeat(" ", widths[i]-terminal.Columns(textOf(cell)))
		if i < len(alignments) && alignments[i] == east.AlignRight {
			b.WriteString(space + l.painted(cell))
		} else {
			b.WriteString(l.painted(cell) + space)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func joined(cells [][]glyph) []glyph {
	var out []glyph
	for i, cell := range cells {
		if i > 0 {
			out = append(out, glyphs(between, faint)...)
		}
		out = append(out, cell...)
	}
	return out
}

// rule returns the line below the head of a table.
func rule(widths []int, wrapped bool) string {
	if wrapped {
		return "───"
	}
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return strings.Join(parts, "─┼─")
}
