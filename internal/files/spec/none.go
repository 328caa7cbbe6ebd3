package spec

import (
	"reflect"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/budget"
)

// None in the place of a limit takes the limit away, the default too. In a
// file it is the word none.
const None = budget.None

// takesNone reports whether a field is a limit that can be taken away.
func takesNone(f reflect.StructField) bool { return f.Tag.Get("none") != "" }

func isNone(n *yaml.Node) bool {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "none"
}

// setNone takes the limit away that a number, or a pointer to one, stands for.
func setNone(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(reflect.ValueOf(None).Convert(v.Type()))
}

// limit is [within] for a limit that can be taken away. A number that means
// the same in code is no word that an owner would recognise in a file.
func limit[N int | int64 | float64](r *report, path string, v *N, low, high N) {
	if v != nil && *v == None && (isNone(r.places[path]) || !r.has(path)) {
		return
	}
	inside(r, path, v, low, high, ", or none")
}
