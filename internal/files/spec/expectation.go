package spec

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// expects says what a Go value takes in the place that is read: one of the values that
// its field allows, or what [expectation] says.
func (d *decoder) expects(v reflect.Value) string {
	if v.Kind() == reflect.String && len(d.allowed) > 0 {
		return choice(d.allowed)
	}
	return expectation(v)
}

// expectation says what kind of value a Go value takes.
func expectation(v reflect.Value) string {
	t := v.Type()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if e, ok := reflect.New(t).Interface().(interface{ expected() string }); ok {
		return e.expected()
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "a mapping of " + strings.Join(builtKeys(t), ", ")
	case reflect.Map:
		return "a mapping"
	}
	return "a value"
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if isNull(n) {
		return "empty"
	}
	value := n.Value
	if r := []rune(value); len(r) > 60 {
		value = string(r[:60]) + "…"
	}
	return cmp.Or(quoted(n.Tag, value), value)
}

// quoted quotes what is a text, so that "5" and 5 look different.
func quoted(tag, value string) string {
	if tag == "!!int" || tag == "!!float" || tag == "!!bool" {
		return ""
	}
	return strconv.Quote(value)
}
