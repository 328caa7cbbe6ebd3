package decode

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Report collects the problems of one file. It records the place of every path, for
// checks after decoding. A report without places belongs to a value built in code.
type Report struct {
	File     string
	places   map[string]*yaml.Node
	Problems Errors
	Warnings Errors
	// more counts the problems beyond MaxProblems.
	more int
	// wrong holds the paths that have a problem, so that no rule reports the incomplete
	// value that decoding left there.
	wrong map[string]bool
}

// MaxProblems bounds the reported problems of one file; further problems are only
// counted.
const MaxProblems = 100

// New returns an empty report of a file.
func New(file string) *Report { return &Report{File: file, places: map[string]*yaml.Node{}} }

// Fill decodes the text of a file into a value and reports whether the text is a
// mapping, valid or not. most bounds the number of values, 0 for the default.
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

// Problem returns a problem at a node without adding it to the report.
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

// Include adds the problems of another file that this file names.
func (r *Report) Include(in *Report) {
	r.Problems = append(r.Problems, in.Problems...)
	r.more += in.more
}

// All returns the problems in the order of their places, and the number of further
// ones.
func (r *Report) All() Errors { return r.Problems.Sorted().And(r.more) }

// At reports a problem with the value at a path, or with its absence.
func (r *Report) At(path, expected, format string, args ...any) {
	r.Fail(r.NodeAt(path), path, expected, format, args...)
}

// Warn reports a problem that does not prevent the use of the file.
func (r *Report) Warn(path, format string, args ...any) {
	r.Warnings = append(r.Warnings, r.Problem(r.NodeAt(path), path, "", format, args...))
}

// Has reports whether the file contains a value at path.
func (r *Report) Has(path string) bool { return r.places[path] != nil }

// NodeAt returns the node of a path, or of its nearest ancestor in the file.
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

// Problem is an error in a file, or a warning about it.
type Problem struct {
	File string `json:"file"`
	// Line and Column count from 1, columns in characters. Both are 0 for a
	// value that was built in code, and for a file that cannot be read.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is the key's path, for example iteration.max_cycles.
	Path    string `json:"path"`
	Message string `json:"message"`
	// Expected describes a correct value.
	Expected string `json:"expected,omitempty"`
}

// String formats the problem as file:line:column: path: message (expected …).
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

// Errors holds all problems of a file, in the order of their places.
type Errors []Problem

// Error returns the problems, one on each line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sorted sorts the problems by place. It removes duplicates, which occur behind
// aliases.
func (e Errors) Sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

// And adds a note about the number of further problems, unless it is 0.
func (e Errors) And(more int) Errors {
	if more == 0 {
		return e
	}
	return append(e, Problem{File: e[0].File, Message: fmt.Sprintf("and %d more problems", more)})
}
