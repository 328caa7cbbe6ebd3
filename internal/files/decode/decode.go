// Package decode fills Go values from files in YAML and JSON and reports the errors of
// a file. It is strict: an unknown key, a wrong type or a value out of range is a
// problem with its file, line, column and path, and all problems of a file are reported
// at once.
package decode

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxValues bounds the values of a file after its aliases are expanded.
const maxValues = 20_000

// Decoder fills Go values from a tree and reports values that do not fit.
type Decoder struct {
	*Report
	// Root is the type of the whole file, which is searched for misplaced keys.
	Root reflect.Type
	// Lenient reports whether an unknown key at a path is accepted if it is not a
	// likely misspelling; nil accepts none.
	Lenient func(path string) bool
	// homes maps each key of the file to the place where it belongs.
	homes map[string]string
	// most is the maximum number of values, 0 for maxValues.
	most   int
	values int
	// allowed lists the allowed values of the field being read, nil for any.
	allowed []string
}

// customDecoder is a type that decodes itself, because it has several forms.
type customDecoder interface {
	DecodeNode(d *Decoder, n *yaml.Node, path string)
}

// Value decodes the node at a path into v.
func (d *Decoder) Value(n *yaml.Node, path string, v reflect.Value) {
	if d.exhausted(n, path) {
		return
	}
	d.places[path] = n
	if n.Kind == yaml.AliasNode {
		// A problem with the whole value is reported at the alias; a problem inside the
		// value is reported at the anchor, which is more precise.
		n = n.Alias
	}
	if IsNull(n) {
		d.Fail(n, path, d.expects(v), "is empty")
		return
	}
	if v.CanAddr() {
		if c, ok := v.Addr().Interface().(customDecoder); ok {
			c.DecodeNode(d, n, path)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.values--
		d.Value(n, path, v.Elem())
	case reflect.Struct:
		d.Object(n, path, v)
	case reflect.Slice:
		d.List(n, path, v)
	case reflect.Map:
		d.dict(n, path, v)
	case reflect.Interface:
		d.free(n, path, v)
	default:
		d.Scalar(n, path, v)
	}
}

// exhausted counts a value and reports whether there are too many of them. Only aliases
// of aliases can cause that.
func (d *Decoder) exhausted(n *yaml.Node, path string) bool {
	d.values++
	most := cmp.Or(d.most, maxValues)
	if d.values == most+1 {
		d.Fail(n, path, "fewer aliases", "the file expands to more than %d values", most)
	}
	return d.values > most
}

// free decodes a value of any form.
func (d *Decoder) free(n *yaml.Node, path string, v reflect.Value) {
	var value any
	if err := n.Decode(&value); err != nil {
		d.Fail(n, path, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	v.Set(reflect.ValueOf(value))
}

// Object decodes a mapping into a struct.
func (d *Decoder) Object(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		if short, has := ShortForm(v.Type()); has && takes(short.Type, n) {
			d.Value(n, path, v.FieldByIndex(short.Index))
			return
		}
		d.Fail(n, path, expectation(v), "is %s", Describe(n))
		return
	}
	fields := FieldsOf(v.Type())
	var known []string
	for _, p := range d.Pairs(n, path) {
		sub := Join(path, p.Key.Value)
		if index, ok := fields[p.Key.Value]; ok {
			d.field(p.Value, sub, v, index)
			continue
		}
		if known == nil {
			known = BuiltKeys(v.Type())
		}
		d.unknown(p.Key, sub, known)
	}
}

func (d *Decoder) field(n *yaml.Node, path string, v reflect.Value, index []int) {
	f, declared := v.FieldByIndex(index), v.Type().FieldByIndex(index)
	allowed := ChoicesOf(declared)
	outer := d.allowed
	d.allowed = allowed
	defer func() { d.allowed = outer }()
	switch limit := TakesNone(declared); {
	case limit && isNone(n) && !d.exhausted(n, path):
		d.places[path] = n
		setNone(f)
	case limit && n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		d.Fail(n, path, expectation(f)+", or none", "is %s", Describe(n))
	case f.Kind() == reflect.Map && allowed != nil && (n.Kind == yaml.ScalarNode || n.Kind == yaml.SequenceNode):
		d.Fail(n, path, "a mapping from a tool to one of "+strings.Join(allowed, ", "), "is %s", Describe(n))
	default:
		d.Value(n, path, f)
	}
}

func (d *Decoder) unknown(key *yaml.Node, path string, known []string) {
	if d.full() { // no suggestion is needed
		d.more++
		return
	}
	meant := Closest(key.Value, known)
	switch {
	case meant != "":
		d.Fail(key, path, "", "unknown key; did you mean %s?", meant)
		return
	case d.Lenient != nil && d.Lenient(path):
		if len(d.Warnings) < MaxProblems {
			d.Warnings = append(d.Warnings, d.Problem(key, path, "", "has no meaning here and is not enforced"))
		}
		return
	}
	if d.homes == nil {
		d.homes = homes(d.Root)
	}
	if place := d.homes[key.Value]; place != "" && place != path {
		d.Fail(key, path, "", "unknown key here; it belongs at %s", place)
		return
	}
	d.Fail(key, path, "one of "+strings.Join(known, ", "), "unknown key")
}

// List decodes a sequence into a slice.
func (d *Decoder) List(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.Fail(n, path, expectation(v), "is %s", Describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.Value(item, fmt.Sprintf("%s[%d]", path, i), out.Index(i))
	}
	v.Set(out)
}

func (d *Decoder) dict(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.Fail(n, path, expectation(v), "is %s", Describe(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range d.Pairs(n, path) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.Value(p.Value, Join(path, p.Key.Value), item)
		out.SetMapIndex(reflect.ValueOf(p.Key.Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

// ShortForm returns the field of a struct that has the tag "short": a file may contain
// its value instead of the mapping.
func ShortForm(t reflect.Type) (f reflect.StructField, has bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("short") != "" {
			return f, true
		}
	}
	return f, false
}

// takes reports whether a node has the form of a type, a text or a list.
func takes(t reflect.Type, n *yaml.Node) bool {
	return t.Kind() == reflect.String && n.Kind == yaml.ScalarNode && n.Tag == "!!str" || t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode
}

// FieldsOf maps the keys of a struct to its fields, including those of embedded
// structs.
func FieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

// BuiltKeys returns the keys of a struct that a file may use, without keys that are
// only decoded to be refused.
func BuiltKeys(t reflect.Type) []string {
	fields := FieldsOf(t)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(key string) bool { return t.FieldByIndex(fields[key]).Tag.Get("unbuilt") != "" })
}

// Join returns the path of a key below a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Pair is one key of a mapping with its value.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the pairs of a mapping. Merged mappings come last, without keys that
// the mapping itself has.
func (d *Decoder) Pairs(n *yaml.Node, path string) []Pair {
	var own, merged []Pair
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := Pair{n.Content[i], n.Content[i+1]}
		switch {
		case p.Key.Tag == "!!merge":
			merged = append(merged, d.merged(p.Value, path)...)
			continue
		case p.Key.Kind != yaml.ScalarNode || p.Key.Tag == "!!null":
			d.Fail(p.Key, path, "a text as key", "a key is %s", Describe(p.Key))
			continue
		case seen[p.Key.Value]:
			d.Fail(p.Key, Join(path, p.Key.Value), "", "the key is given twice")
			continue
		}
		seen[p.Key.Value] = true
		own = append(own, p)
	}
	for _, p := range merged {
		if !seen[p.Key.Value] {
			seen[p.Key.Value] = true
			own = append(own, p)
		}
	}
	return own
}

// merged returns the pairs of the mapping, or list of mappings, that "<<" refers to.
func (d *Decoder) merged(n *yaml.Node, path string) []Pair {
	if d.exhausted(n, path) {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.Pairs(n, path)
	case yaml.SequenceNode:
		var out []Pair
		for _, item := range n.Content {
			out = append(out, d.merged(item, path)...)
		}
		return out
	}
	d.Fail(n, Join(path, "<<"), "a mapping or a list of mappings", "is %s", Describe(n))
	return nil
}
