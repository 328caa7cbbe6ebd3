package decode

import (
	"cmp"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Scalar decodes a text, a number or a boolean.
func (d *Decoder) Scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.Fail(n, path, d.expects(v), "is %s", Describe(n))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" && len(d.allowed) > 0 {
			d.Fail(n, path, choice(d.allowed), "is %s", Describe(n))
			return
		}
		if n.Tag != "!!str" {
			d.Fail(n, path, "a text; write it in quotes: "+strconv.Quote(n.Value), "is %s", n.Value)
			return
		}
		v.SetString(n.Value)
		ok = true
	case reflect.Bool:
		if ok = n.Tag == "!!bool"; ok {
			v.SetBool(strings.EqualFold(n.Value, "true"))
		}
	case reflect.Int, reflect.Int64:
		var i int64
		if i, ok = WholeNumber(n); ok {
			v.SetInt(i)
		}
	case reflect.Float64:
		var f float64
		if f, ok = number(n); ok {
			v.SetFloat(f)
		}
	}
	if !ok {
		d.Fail(n, path, expectation(v), "is %s", Describe(n))
	}
}

// WholeNumber reads an integer. A leading zero is refused: some YAML readers
// take 010 for eight.
func WholeNumber(n *yaml.Node) (int64, bool) {
	text := strings.ReplaceAll(n.Value, "_", "")
	digits := strings.TrimLeft(text, "+-")
	if n.Tag != "!!int" || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 0, 64)
	return i, err == nil
}

func number(n *yaml.Node) (float64, bool) {
	if i, ok := WholeNumber(n); ok {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return f, n.Tag == "!!float" && err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// expects describes what a Go value accepts at the current place: the allowed values of
// its field, or else the [expectation].
func (d *Decoder) expects(v reflect.Value) string {
	if v.Kind() == reflect.String && len(d.allowed) > 0 {
		return choice(d.allowed)
	}
	return expectation(v)
}

// expectation describes the kind of value that a Go value accepts.
func expectation(v reflect.Value) string {
	t := v.Type()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if e, ok := reflect.New(t).Interface().(interface{ Expected() string }); ok {
		return e.Expected()
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
		return "a mapping of " + strings.Join(BuiltKeys(t), ", ")
	case reflect.Map:
		return "a mapping"
	}
	return "a value"
}

// Describe describes the value of a node, for a problem.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if IsNull(n) {
		return "empty"
	}
	value := n.Value
	if r := []rune(value); len(r) > 60 {
		value = string(r[:60]) + "…"
	}
	return cmp.Or(quoted(n.Tag, value), value)
}

// quoted quotes a text, to distinguish "5" from 5.
func quoted(tag, value string) string {
	if tag == "!!int" || tag == "!!float" || tag == "!!bool" {
		return ""
	}
	return strconv.Quote(value)
}
