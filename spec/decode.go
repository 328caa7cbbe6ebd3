package spec

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxValues bounds what the aliases of a file may expand to.
const maxValues = 20_000

// decoder fills Go values from a tree and reports what does not fit.
type decoder struct {
	*report
	// root is the type of the whole file, in which misplaced keys are sought.
	root reflect.Type
	// lenient says whether an unknown key without a near neighbour may stay.
	lenient bool
	// homes tells for each key of the file where it belongs.
	homes  map[string]string
	values int
}

// customDecoder is a type that reads itself, because it has several forms.
type customDecoder interface {
	decodeNode(d *decoder, n *yaml.Node, path string)
}

func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	if d.exhausted(n, path) {
		return
	}
	d.places[path] = n
	if n.Kind == yaml.AliasNode {
		// A problem is shown where the alias stands only when it concerns the
		// whole value; inside, the place of the anchor says more.
		n = n.Alias
	}
	if isNull(n) {
		d.fail(n, path, expectation(v), "is empty")
		return
	}
	if v.CanAddr() {
		if c, ok := v.Addr().Interface().(customDecoder); ok {
			c.decodeNode(d, n, path)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.values--
		d.value(n, path, v.Elem())
	case reflect.Struct:
		d.object(n, path, v)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Map:
		d.dict(n, path, v)
	case reflect.Interface:
		d.free(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

// exhausted counts a value and says that there have been too many of them,
// which only aliases of aliases can bring about.
func (d *decoder) exhausted(n *yaml.Node, path string) bool {
	d.values++
	if d.values == maxValues+1 {
		d.fail(n, path, "fewer aliases", "the file expands to more than %d values", maxValues)
	}
	return d.values > maxValues
}

// free decodes a value whose form nothing here depends on.
func (d *decoder) free(n *yaml.Node, path string, v reflect.Value) {
	var value any
	if err := n.Decode(&value); err != nil {
		d.fail(n, path, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	v.Set(reflect.ValueOf(value))
}

// pair is one key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs lists what a mapping holds, merged mappings last and only where the
// mapping does not say otherwise.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	var own, merged []pair
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1]}
		switch {
		case p.key.Tag == "!!merge":
			merged = append(merged, d.merged(p.value, path)...)
			continue
		case p.key.Kind != yaml.ScalarNode || p.key.Tag == "!!null":
			d.fail(p.key, path, "a text as key", "a key is %s", describe(p.key))
			continue
		case seen[p.key.Value]:
			d.fail(p.key, join(path, p.key.Value), "", "the key is given twice")
			continue
		}
		seen[p.key.Value] = true
		own = append(own, p)
	}
	for _, p := range merged {
		if !seen[p.key.Value] {
			seen[p.key.Value] = true
			own = append(own, p)
		}
	}
	return own
}

// merged lists the pairs of the mapping, or list of mappings, behind a "<<".
func (d *decoder) merged(n *yaml.Node, path string) []pair {
	if d.exhausted(n, path) {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.pairs(n, path)
	case yaml.SequenceNode:
		var out []pair
		for _, item := range n.Content {
			out = append(out, d.merged(item, path)...)
		}
		return out
	}
	d.fail(n, join(path, "<<"), "a mapping or a list of mappings", "is %s", describe(n))
	return nil
}

func (d *decoder) object(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, expectation(v), "is %s", describe(n))
		return
	}
	fields := fieldsOf(v.Type())
	for _, p := range d.pairs(n, path) {
		sub := join(path, p.key.Value)
		if index, ok := fields[p.key.Value]; ok {
			d.field(p.value, sub, v, index)
			continue
		}
		d.unknown(p.key, sub, sortedKeys(fields))
	}
}

func (d *decoder) field(n *yaml.Node, path string, v reflect.Value, index []int) {
	f := v.FieldByIndex(index)
	switch limit := takesNone(v.Type().FieldByIndex(index)); {
	case limit && isNone(n) && !d.exhausted(n, path):
		d.places[path] = n
		setNone(f)
	case limit && n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		d.fail(n, path, expectation(f)+", or none", "is %s", describe(n))
	default:
		d.value(n, path, f)
	}
}

func (d *decoder) unknown(key *yaml.Node, path string, known []string) {
	if d.full() {
		return
	}
	meant := closest(key.Value, known)
	switch {
	case meant != "":
		d.fail(key, path, "", "unknown key; did you mean %s?", meant)
		return
	case d.lenient && !strings.HasPrefix(path, "iteration."):
		if len(d.warnings) < maxProblems {
			d.warnings = append(d.warnings, d.problem(key, path, "", "has no meaning here and is not enforced"))
		}
		return
	}
	if d.homes == nil {
		d.homes = map[string]string{}
		homes(d.root, "", d.homes)
	}
	if place := d.homes[key.Value]; place != "" && place != path {
		d.fail(key, path, "", "unknown key here; it belongs at %s", place)
		return
	}
	d.fail(key, path, "one of "+strings.Join(known, ", "), "unknown key")
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, expectation(v), "is %s", describe(n))
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
		d.fail(n, path, expectation(v), "is %s", describe(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range d.pairs(n, path) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, join(path, p.key.Value), item)
		out.SetMapIndex(reflect.ValueOf(p.key.Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, expectation(v), "is %s", describe(n))
		return
	}
	ok := false
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" {
			d.fail(n, path, "a text; write it in quotes: "+strconv.Quote(n.Value), "is %s", n.Value)
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
		if i, ok = wholeNumber(n); ok {
			v.SetInt(i)
		}
	case reflect.Float64:
		var f float64
		if f, ok = number(n); ok {
			v.SetFloat(f)
		}
	}
	if !ok {
		d.fail(n, path, expectation(v), "is %s", describe(n))
	}
}

// wholeNumber reads an integer. A leading zero is refused: some YAML readers
// take 010 for eight.
func wholeNumber(n *yaml.Node) (int64, bool) {
	text := strings.ReplaceAll(n.Value, "_", "")
	digits := strings.TrimLeft(text, "+-")
	if n.Tag != "!!int" || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 0, 64)
	return i, err == nil
}

func number(n *yaml.Node) (float64, bool) {
	if i, ok := wholeNumber(n); ok {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return f, n.Tag == "!!float" && err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// fieldsOf maps the keys of a struct to its fields, those of embedded structs
// included.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

func sortedKeys[V any](m map[string]V) []string {
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
	case reflect.Struct, reflect.Map:
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
