package spec

import (
	"fmt"
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
}

func (r *report) problem(n *yaml.Node, path, expected, format string, args ...any) Problem {
	p := Problem{File: r.file, Path: path, Message: fmt.Sprintf(format, args...), Expected: expected}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	return p
}

func (r *report) fail(n *yaml.Node, path, expected, format string, args ...any) {
	r.problems = append(r.problems, r.problem(n, path, expected, format, args...))
}

// at reports a problem with the value at a path, or with the lack of one.
func (r *report) at(path, expected, format string, args ...any) {
	r.fail(r.place(path), path, expected, format, args...)
}

// warn reports what does not stop the file from being used.
func (r *report) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(r.place(path), path, "", format, args...))
}

// has says that the file gives a value at path.
func (r *report) has(path string) bool { return r.places[path] != nil }

// place finds the node of a path, or of the nearest parent that the file has.
func (r *report) place(path string) *yaml.Node {
	for path != "" {
		if n := r.places[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return r.places[""]
}

// reported says that there is already a problem with the value at a path, so
// that a rule does not complain about what decoding left there.
func (r *report) reported(path string) bool {
	for _, p := range r.problems {
		if p.Path == path {
			return true
		}
	}
	return false
}
