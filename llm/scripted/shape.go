package scripted

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// shape compares the YAML of a script with the Go types of a script, so that an error
// contains the place and what was expected there.
type shape struct {
	file  string
	wrong []error
}

// check checks the node at a path: "" for the whole file, then "turn 2:
// tool_calls[0].name".
func (s *shape) check(n *yaml.Node, t reflect.Type, path string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.ShortTag() == "!!null", t.Kind() == reflect.Interface:
	case t == reflect.TypeFor[texts]():
		if n.Kind != yaml.ScalarNode {
			s.list(n, t, path, "a text, or a list of texts")
		}
	case t.Kind() == reflect.Slice:
		s.list(n, t, path, "a list")
	case t.Kind() == reflect.Struct:
		s.mapping(n, t, path)
	case t.Kind() == reflect.String:
		s.want(n.Kind == yaml.ScalarNode, n, path, "a text")
	default:
		var v int64
		s.want(n.Kind == yaml.ScalarNode && n.Decode(&v) == nil, n, path, "a whole number")
	}
}

func (s *shape) list(n *yaml.Node, t reflect.Type, path, expected string) {
	if path == "" {
		expected = "a list of turns"
	}
	if !s.want(n.Kind == yaml.SequenceNode, n, path, expected) {
		return
	}
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		if path == "" {
			at = fmt.Sprintf("turn %d", i+1)
		}
		if item.ShortTag() == "!!null" && t.Elem().Kind() == reflect.Struct { // the decoder would omit it, so later items would have wrong indexes
			s.fail(item, at, "is empty", "a mapping of "+strings.Join(keysOf(t.Elem()), ", "))
			continue
		}
		s.check(item, t.Elem(), at)
	}
}

func (s *shape) mapping(n *yaml.Node, t reflect.Type, path string) {
	if !s.want(n.Kind == yaml.MappingNode, n, path, "a mapping of "+strings.Join(keysOf(t), ", ")) {
		return
	}
	join := "."
	if strings.HasPrefix(path, "turn ") && !strings.Contains(path, ": ") {
		join = ": "
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		field, known := fieldOf(t, key.Value)
		switch {
		case given[key.Value]:
			s.fail(key, path+join+key.Value, "the key is given twice", "it once")
		case known:
			given[key.Value] = true
			s.check(n.Content[i+1], field, path+join+key.Value)
		case key.ShortTag() != "!!merge":
			s.fail(key, path+join+key.Value, "unknown key", "one of "+strings.Join(keysOf(t), ", "))
		}
	}
}

func (s *shape) want(ok bool, n *yaml.Node, path, expected string) bool {
	if !ok {
		is := "is a list"
		switch n.Kind {
		case yaml.ScalarNode:
			is = fmt.Sprintf("is %q", n.Value)
		case yaml.MappingNode:
			is = "is a mapping"
		}
		s.fail(n, path, is, expected)
	}
	return ok
}

func (s *shape) fail(n *yaml.Node, path, what, expected string) {
	if path != "" {
		what = path + ": " + what
	}
	s.wrong = append(s.wrong, fmt.Errorf("%s:%d:%d: %s (expected %s)", s.file, n.Line, n.Column, what, expected))
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		keys = append(keys, keyOf(f))
	}
	return keys
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if keyOf(f) == key {
			return f.Type, true
		}
	}
	return nil, false
}

func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// unreadable returns an error of the YAML parser with its place in the file.
func unreadable(file string, err error) error {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		message := e.Message
		if e.ContextMsg != "" {
			message = e.ContextMsg + ": " + message
		}
		return fmt.Errorf("%s:%d:%d: %s (expected valid YAML)", file, max(e.Mark.Line, 1), max(e.Mark.Column, 1), message)
	}
	return fmt.Errorf("%s: %s (expected valid YAML)", file, strings.TrimPrefix(err.Error(), "yaml: "))
}
