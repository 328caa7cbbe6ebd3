package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// decoder fills Go values from a YAML tree and collects what does not fit. It
// remembers where every path stood, for checks that come later.
type decoder struct {
	file     string
	problems Errors
	places   map[string]*yaml.Node
}

func (d *decoder) fail(n *yaml.Node, path, expected, format string, args ...any) {
	p := Problem{File: d.file, Path: path, Message: fmt.Sprintf(format, args...), Expected: expected}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

// at reports a problem with the value at a path.
func (d *decoder) at(path, expected, format string, args ...any) {
	n := d.places[path]
	for parent := path; n == nil && parent != ""; {
		parent = parent[:max(strings.LastIndexByte(parent, '.'), 0)]
		n = d.places[parent]
	}
	d.fail(n, path, expected, format, args...)
}

// has says that the file gives a value at path.
func (d *decoder) has(path string) bool { return d.places[path] != nil }

// customDecoder is a type that reads itself, because it has several forms.
type customDecoder interface {
	decodeYAML(d *decoder, n *yaml.Node, path string)
}

func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.places[path] = n
	if v.CanAddr() {
		if c, ok := v.Addr().Interface().(customDecoder); ok {
			c.decodeYAML(d, n, path)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.Tag == "!!null" {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, path, v.Elem())
	case reflect.Struct:
		d.object(n, path, v)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Map:
		d.dict(n, path, v)
	case reflect.Interface:
		var any any
		if err := n.Decode(&any); err != nil {
			d.fail(n, path, "", "%v", err)
			return
		}
		if any != nil {
			v.Set(reflect.ValueOf(any))
		}
	default:
		d.scalar(n, path, v)
	}
}

func (d *decoder) object(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "a mapping", "is %s", describe(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		sub := join(path, key.Value)
		index, ok := fields[key.Value]
		switch {
		case !ok:
			d.fail(key, sub, "one of "+strings.Join(sortedKeys(fields), ", "), "unknown key")
		case seen[key.Value]:
			d.fail(key, sub, "", "the key is given twice")
		default:
			d.value(value, sub, v.Field(index))
		}
		seen[key.Value] = true
	}
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "a list", "is %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, fmt.Sprintf("%s[%d]", path, i), out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) dict(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "a mapping", "is %s", describe(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], join(path, n.Content[i].Value), item)
		out.SetMapIndex(reflect.ValueOf(n.Content[i].Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, kindName(v.Kind()), "is %s", describe(n))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		if ok = n.Tag == "!!str"; ok {
			v.SetString(n.Value)
		}
	case reflect.Bool:
		var b bool
		if ok = n.Tag == "!!bool" && n.Decode(&b) == nil; ok {
			v.SetBool(b)
		}
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
		if ok = n.Tag == "!!int" && err == nil; ok {
			v.SetInt(i)
		}
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if ok = (n.Tag == "!!int" || n.Tag == "!!float") && err == nil; ok {
			v.SetFloat(f)
		}
	}
	if !ok {
		d.fail(n, path, kindName(v.Kind()), "is %s", describe(n))
	}
}

func fieldsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "another kind of value"
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "empty"
	}
	return strconv.Quote(n.Value)
}
