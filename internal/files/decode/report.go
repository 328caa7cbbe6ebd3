package decode

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Report collects what is wrong with one file. It remembers where every path
// stood, for checks that come after decoding. A report without places is that
// of a value built in code.
type Report struct {
	File     string
	places   map[string]*yaml.Node
	Problems Errors
	Warnings Errors
	// more counts the problems beyond MaxProblems.
	more int
	// wrong are the paths that have a problem, so that a rule does not
	// complain about what decoding left there.
	wrong map[string]bool
}

// MaxProblems bounds the problems of one file that are reported; the rest is counted.
const MaxProblems = 100

// New is the report of a file.
func New(file string) *Report { return &Report{File: file, places: map[string]*yaml.Node{}} }

// Fill reads the text of a file into a value, with most values or the default, and
// reports whether the text is a mapping, right or wrong.
func (r *Report) Fill(into any, data []byte, example string, most int) bool {
	root := r.Read(data, example)
	if root == nil {
		return false
	}
	v := reflect.ValueOf(into).Elem()
	d := &Decoder{Report: r, Root: v.Type(), most: most}
	d.Value(root, "", v)
	return root.Kind == yaml.MappingNode
}

// Problem is a problem at a node, which is not added to the report.
func (r *Report) Problem(n *yaml.Node, path, expected, format string, args ...any) Problem {
	p := Problem{File: r.File, Path: path, Message: fmt.Sprintf(format, args...), Expected: expected}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	return p
}

// Fail reports a problem at a node.
func (r *Report) Fail(n *yaml.Node, path, expected, format string, args ...any) {
	if r.wrong == nil {
		r.wrong = map[string]bool{}
	}
	r.wrong[path] = true
	if r.full() {
		r.more++
		return
	}
	r.Problems = append(r.Problems, r.Problem(n, path, expected, format, args...))
}

// Include adds what is wrong with another file, which this one names.
func (r *Report) Include(in *Report) {
	r.Problems = append(r.Problems, in.Problems...)
	r.more += in.more
}

// All are the problems in the order of their places, and how many more there are.
func (r *Report) All() Errors { return r.Problems.Sorted().And(r.more) }

// At reports a problem with the value at a path, or with the lack of one.
func (r *Report) At(path, expected, format string, args ...any) {
	r.Fail(r.NodeAt(path), path, expected, format, args...)
}

// Warn reports what does not stop the file from being used.
func (r *Report) Warn(path, format string, args ...any) {
	r.Warnings = append(r.Warnings, r.Problem(r.NodeAt(path), path, "", format, args...))
}

// Has reports whether the file gives a value at path.
func (r *Report) Has(path string) bool { return r.places[path] != nil }

// NodeAt returns the node of a path, or of the nearest parent that the file has.
func (r *Report) NodeAt(path string) *yaml.Node {
	for path != "" {
		if n := r.places[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return r.places[""]
}

// Reported reports whether there is a problem with the value at a path.
func (r *Report) Reported(path string) bool { return r.wrong[path] }

// full reports whether further problems are only counted.
func (r *Report) full() bool { return len(r.Problems) >= MaxProblems }

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

// Sorted sorts the problems by place. A problem behind an alias may have been found
// more than once; it is listed once.
func (e Errors) Sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

// And adds how many more problems there are, where there are any.
func (e Errors) And(more int) Errors {
	if more == 0 {
		return e
	}
	return append(e, Problem{File: e[0].File, Message: fmt.Sprintf("and %d more problems", more)})
}
