package spec

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// report collects what is wrong with one file. It remembers where every path
// stood, for checks that come after decoding. A report without places is that
// of a value built in code.
type report struct {
	file     string
	places   map[string]*yaml.Node
	problems Errors
	warnings Errors
	// more counts the problems beyond maxProblems.
	more int
	// wrong are the paths that have a problem, so that a rule does not
	// complain about what decoding left there.
	wrong map[string]bool
}

// maxProblems bounds the problems of one file that are reported; the rest is counted.
const maxProblems = 100

func newReport(file string) *report { return &report{file: file, places: map[string]*yaml.Node{}} }

// fill reads the text of a file into a value, with most values or the default, and
// reports whether the text is a mapping, right or wrong.
func (r *report) fill(into any, data []byte, example string, most int) bool {
	root := r.read(data, example)
	if root == nil {
		return false
	}
	v := reflect.ValueOf(into).Elem()
	d := &decoder{report: r, root: v.Type(), most: most}
	d.value(root, "", v)
	return root.Kind == yaml.MappingNode
}

func (r *report) problem(n *yaml.Node, path, expected, format string, args ...any) Problem {
	p := Problem{File: r.file, Path: path, Message: fmt.Sprintf(format, args...), Expected: expected}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	return p
}

func (r *report) fail(n *yaml.Node, path, expected, format string, args ...any) {
	if r.wrong == nil {
		r.wrong = map[string]bool{}
	}
	r.wrong[path] = true
	if r.full() {
		r.more++
		return
	}
	r.problems = append(r.problems, r.problem(n, path, expected, format, args...))
}

// all are the problems in the order of their places, and how many more there are.
func (r *report) all() Errors { return r.problems.sorted().and(r.more) }

// at reports a problem with the value at a path, or with the lack of one.
func (r *report) at(path, expected, format string, args ...any) {
	r.fail(r.nodeAt(path), path, expected, format, args...)
}

// warn reports what does not stop the file from being used.
func (r *report) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(r.nodeAt(path), path, "", format, args...))
}

// has reports whether the file gives a value at path.
func (r *report) has(path string) bool { return r.places[path] != nil }

// nodeAt returns the node of a path, or of the nearest parent that the file has.
func (r *report) nodeAt(path string) *yaml.Node {
	for path != "" {
		if n := r.places[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return r.places[""]
}

// reported reports whether there is a problem with the value at a path.
func (r *report) reported(path string) bool { return r.wrong[path] }

// full reports whether further problems are only counted.
func (r *report) full() bool { return len(r.problems) >= maxProblems }
