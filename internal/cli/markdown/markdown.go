// Package markdown lays out Markdown in lines for a terminal: a whole text, or the
// settled part of a text that is still being written. It removes all control
// characters.
package markdown

import (
	"strings"

	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// Lines lays out a whole text. Prose is wrapped; lines of code keep their length,
// so that they can be copied. Without colour the emphasis marks stay.
func Lines(source string, width int, colour bool) []string {
	s := Writer{Width: func() int { return width }, Colour: colour}
	var lines []string
	for _, piece := range strings.SplitAfter(source, "\n\n") {
		s.Add(piece)
		settled, _ := s.Next()
		lines = append(lines, settled...)
	}
	return append(lines, s.Close()...)
}

// newParser returns a parser for what models write: without HTML, which is shown as
// it is, and without headings that a line below marks, so that no line changes the
// one before it.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
		),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}
