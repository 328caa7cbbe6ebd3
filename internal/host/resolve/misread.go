package resolve

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The parser and the shells do not end every part of a line at the same place: what
// is the middle of a quoted text, a comment or a here-document to the one is a
// command to the other. A line with such a part is asked about.

// goesOn fits a comment that ends with a backslash, behind which the parser goes on
// with the words of the command, while for a shell the next line is another one.
var goesOn = newPattern("(?m)(^|[\\s;&|()<>`])#.*\\\\$")

// misreads asks about the parts of a line that end elsewhere for some shell.
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
	looked := uint(0) // where the last expansion ends that was looked at, with all in it
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

// mayEnd reports whether a shell may take a line of a here-document for its last
// one: of lines that it joins, within an expansion, or with the end of a
// substitution behind the word.
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

// afterEscapes is the text behind the backquote that a substitution begins with,
// without what a backslash quotes.
func afterEscapes(text string) string {
	return escaped().ReplaceAllString(strings.TrimPrefix(text, "`"), "")
}

var escaped = newPattern(`(?s)\\.`)

// quotesEnd reports whether single quotes within an expansion, which count for
// nothing where that stands between double ones, hold what could end either.
func quotesEnd(n *syntax.ParamExp) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		quoted, ok := n.(*syntax.SglQuoted)
		found = found || ok && strings.ContainsAny(quoted.Value, "}\"`$\\")
		return true
	})
	return found
}
