package spec

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	homes map[string]string
	// most is how many values there may be, 0 for maxValues.
	most   int
	values int
	// allowed are the values that the field allows which is read, nil for any.
	allowed []string
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
		d.fail(n, path, d.expects(v), "is empty")
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
	most := cmp.Or(d.most, maxValues)
	if d.values == most+1 {
		d.fail(n, path, "fewer aliases", "the file expands to more than %d values", most)
	}
	return d.values > most
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

func (d *decoder) object(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		if short, has := shortForm(v.Type()); has && takes(short.Type, n) {
			d.value(n, path, v.FieldByIndex(short.Index))
			return
		}
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
		d.unknown(p.key, sub, v.Type())
	}
}

func (d *decoder) field(n *yaml.Node, path string, v reflect.Value, index []int) {
	f, declared := v.FieldByIndex(index), v.Type().FieldByIndex(index)
	allowed := choicesOf(declared)
	outer := d.allowed
	d.allowed = allowed
	defer func() { d.allowed = outer }()
	switch limit := takesNone(declared); {
	case limit && isNone(n) && !d.exhausted(n, path):
		d.places[path] = n
		setNone(f)
	case limit && n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		d.fail(n, path, expectation(f)+", or none", "is %s", describe(n))
	case f.Kind() == reflect.Map && allowed != nil && (n.Kind == yaml.ScalarNode || n.Kind == yaml.SequenceNode):
		d.fail(n, path, "a mapping from a tool to one of "+strings.Join(allowed, ", "), "is %s", describe(n))
	default:
		d.value(n, path, f)
	}
}

func (d *decoder) unknown(key *yaml.Node, path string, in reflect.Type) {
	if d.full() { // what was meant is not looked for
		d.more++
		return
	}
	known := builtKeys(in)
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
		d.homes = homes(d.root)
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

// shortForm is the field of a struct that has the tag "short": in a file its value may
// stand in the place of the mapping.
func shortForm(t reflect.Type) (f reflect.StructField, has bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("short") != "" {
			return f, true
		}
	}
	return f, false
}

// takes reports whether a node is a text, or a list, as a type is.
func takes(t reflect.Type, n *yaml.Node) bool {
	return t.Kind() == reflect.String && n.Kind == yaml.ScalarNode && n.Tag == "!!str" || t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode
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

// builtKeys are the keys of a struct that a file may use: not those which are read so
// that they can be refused.
func builtKeys(t reflect.Type) []string {
	fields := fieldsOf(t)
	return slices.DeleteFunc(sortedKeys(fields), func(key string) bool { return t.FieldByIndex(fields[key]).Tag.Get("unbuilt") != "" })
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
