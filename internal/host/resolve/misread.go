package resolve

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser and the shells may disagree on where a part of a line ends: the parser may
// see quoted text, a comment or a here-document where a shell sees a command. A line
// with such a part is unclear.

// goesOn matches a comment that ends with a backslash: the parser continues with the
// words of the command, but for a shell the next line is a new command.
var goesOn = newPattern("(?m)(^|[\\s;&|()<>`])#.*\\\\$")

// misreads marks parts of a line that end elsewhere for some shell.
func (r *reader) misreads(file *syntax.File, text string) {
	part := func(what string) { r.unclear("not every shell ends " + what + " at the same place") }
	if goesOn.MatchString(text) {
		part("a comment")
	}
	if strings.Contains(text, "$\\\n") {
		part("the beginning of an expansion")
	}
	between := func(from, to syntax.Pos) string {
		start, end := min(int(from.Offset()), len(text)), min(int(to.Offset()), len(text))
		return text[min(start, end):end]
	}
	looked := uint(0) // the end of the last expansion that was checked, with its content
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Hdoc != nil && mayEnd(between(n.Hdoc.Pos(), n.Hdoc.End()), wordOf(n.Word)) {
				part("a here-document")
			}
		case *syntax.CmdSubst:
			if n.Backquotes && strings.Contains(afterEscapes(between(n.Left, n.Right)), "`") {
				part("a substitution")
			}
		case *syntax.SglQuoted:
			if n.Dollar && strings.Contains(n.Value, `\'`) {
				part("a quoted text")
			}
		case *syntax.ParamExp:
			if n.Pos().Offset() < looked {
				return true
			}
			looked = n.End().Offset()
			if quotesEnd(n) {
				part("an expansion")
			}
		}
		return true
	})
}

// mayEnd reports whether a shell may take a line of a here-document as its last one:
// among joined lines, within an expansion, or with the end of a substitution after the
// word.
func mayEnd(document string, word word) bool {
	document = strings.TrimSuffix(document, word.text)
	if word.computed || word.text == "" || strings.HasSuffix(document, "\\\n") {
		return true
	}
	for line := range strings.Lines(document + "\n" + strings.ReplaceAll(document, "\\\n", "")) {
		if strings.HasPrefix(strings.TrimLeft(line, "\t"), word.text) {
			return true
		}
	}
	return false
}

// afterEscapes returns the text after the backquote of a substitution, without
// characters that a backslash quotes.
func afterEscapes(text string) string {
	return escaped().ReplaceAllString(strings.TrimPrefix(text, "`"), "")
}

var escaped = newPattern(`(?s)\\.`)

// quotesEnd reports whether single quotes within an expansion, which have no meaning
// inside double quotes, contain a character that could end either.
func quotesEnd(n *syntax.ParamExp) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		quoted, ok := n.(*syntax.SglQuoted)
		found = found || ok && strings.ContainsAny(quoted.Value, "}\"`$\\")
		return true
	})
	return found
}
