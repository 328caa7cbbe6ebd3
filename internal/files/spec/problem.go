// Package spec turns agent files into validated values. Parsing is strict: an
// unknown key, a wrong type or a value out of range is an error with its file,
// line, column and path, and all errors of a file are reported at once.
//
// What is written in a file and not built yet is refused where it guards
// something or changes what runs, and is a warning where nothing depends on
// it. Nothing is ignored silently.
package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file, or worth a warning.
type Problem struct {
	File string `json:"file"`
	// Line and Column count from 1, columns in characters. Both are 0 for a
	// value that was built in code, and for a file that cannot be read.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is the key's path, for example iteration.max_cycles.
	Path    string `json:"path"`
	Message string `json:"message"`
	// Expected says what would be right.
	Expected string `json:"expected,omitempty"`
}

// String gives file:line:column: path: message (expected …).
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.File != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		b.WriteString(p.File + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Expected != "" {
		b.WriteString(" (expected " + p.Expected + ")")
	}
	return b.String()
}

// Errors are all the problems of a file, in the order of their places.
type Errors []Problem

// Error gives one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted sorts the problems by place. A problem behind an alias may have been found
// more than once; it is listed once.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

// and adds how many more problems there are, where there are any.
func (e Errors) and(more int) Errors {
	if more == 0 {
		return e
	}
	return append(e, Problem{File: e[0].File, Message: fmt.Sprintf("and %d more problems", more)})
}
