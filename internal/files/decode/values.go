package decode

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/budget"
)

// OneOf reports a text that is not one of the allowed values.
func OneOf(r *Report, path, value string, allowed ...string) {
	if value == "" && !r.Has(path) || slices.Contains(allowed, value) {
		return
	}
	// A value of another type is reported already and decoded as "".
	if value == "" && r.Reported(path) {
		return
	}
	expected := choice(allowed)
	if meant := Closest(value, allowed); meant != "" {
		r.At(path, expected, "is %q; did you mean %s?", value, meant)
		return
	}
	r.At(path, expected, "is %q", value)
}

// choice describes the allowed values.
func choice(allowed []string) string {
	if len(allowed) == 1 {
		return allowed[0]
	}
	return "one of " + strings.Join(allowed, ", ")
}

// Single reports a mapping that does not have exactly one of the given keys.
func Single(r *Report, path, expected string, given ...bool) {
	n := 0
	for _, is := range given {
		if is {
			n++
		}
	}
	if n != 1 && !r.Reported(path) {
		r.At(path, expected, "has %d of them", n)
	}
}

// Missing reports that there is no value at a path, unless a problem with that value is
// reported already.
func Missing(r *Report, path, expected string) {
	for at := path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if r.Reported(at) {
			return
		}
	}
	r.At(path, expected, "is missing")
}

// NotEmpty reports an empty text that the file contains.
func NotEmpty(r *Report, path, value string) {
	if value == "" && r.Has(path) && !r.Reported(path) {
		r.At(path, "a text", "is empty")
	}
}

// Within reports a number that is out of bounds.
func Within[N int | int64 | float64](r *Report, path string, v *N, low, high N) {
	inside(r, path, v, low, high, "")
}

func inside[N int | int64 | float64](r *Report, path string, v *N, low, high N, or string) {
	if v == nil || r.Reported(path) || *v >= low && *v <= high {
		return
	}
	expected := fmt.Sprintf("%v to %v", low, high)
	if float64(high) >= 1_000_000_000 && *v < low {
		expected = fmt.Sprintf("at least %v", low)
	}
	r.At(path, expected+or, "is %v", *v)
}

// Money reports an amount that is neither above 0 nor none.
func Money(r *Report, path string, usd *float64) {
	if usd == nil || r.Reported(path) || *usd > 0 || *usd == budget.None && (isNone(r.places[path]) || !r.Has(path)) {
		return
	}
	r.At(path, "an amount in USD above 0, or none", "is %v", *usd)
}

// ChoicesOf returns the allowed values of a field's texts, nil for any. The schema
// lists them, and the rules refuse all others.
func ChoicesOf(f reflect.StructField) []string {
	if tag, ok := f.Tag.Lookup("oneof"); ok {
		return strings.Fields(tag)
	}
	if named, ok := reflect.Zero(f.Type).Interface().(interface{ Choices() []string }); ok {
		return named.Choices()
	}
	return nil
}

// Choices reports every text in a value that its field does not allow. path is the path
// of the value.
func (r *Report) Choices(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		r.Choices(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			r.Choices(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		fields := FieldsOf(v.Type())
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			field := v.FieldByIndex(fields[key])
			if allowed := ChoicesOf(v.Type().FieldByIndex(fields[key])); allowed != nil {
				r.chosen(field, Join(path, key), allowed)
			} else {
				r.Choices(field, Join(path, key))
			}
		}
	}
}

// chosen reports the texts of a field, alone or in a list or a mapping, that are not
// allowed.
func (r *Report) chosen(v reflect.Value, path string, allowed []string) {
	switch v.Kind() {
	case reflect.String:
		OneOf(r, path, v.String(), allowed...)
	case reflect.Slice:
		for i := range v.Len() {
			r.chosen(v.Index(i), fmt.Sprintf("%s[%d]", path, i), allowed)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			r.chosen(v.MapIndex(key), Join(path, key.String()), allowed)
		}
	}
}

// TakesNone reports whether a field is a limit that can be none.
func TakesNone(f reflect.StructField) bool { return f.Tag.Get("none") != "" }

func isNone(n *yaml.Node) bool {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "none"
}

// setNone sets a number, or a pointer to one, to no limit.
func setNone(v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(reflect.ValueOf(budget.None).Convert(v.Type()))
}

// Limit is [Within] for a limit that can be none. A file must contain the word none,
// because the number for it in code would mean nothing to a reader of the file.
func Limit[N int | int64 | float64](r *Report, path string, v *N, low, high N) {
	if v != nil && *v == budget.None && (isNone(r.places[path]) || !r.Has(path)) {
		return
	}
	inside(r, path, v, low, high, ", or none")
}

// Given returns the value that a file gives, and the zero value if it gives none.
func Given[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
