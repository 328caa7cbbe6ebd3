package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// choicesOf are the values that the texts of a field may have, nil where any
// will do. The schema offers them and the rules refuse any other.
func choicesOf(f reflect.StructField) []string {
	if tag, ok := f.Tag.Lookup("oneof"); ok {
		return strings.Fields(tag)
	}
	if named, ok := reflect.Zero(f.Type).Interface().(interface{ Choices() []string }); ok {
		return named.Choices()
	}
	return nil
}

// choices reports every text in a value of which its field allows no such
// value. path is where the value stands.
func (r *report) choices(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		r.choices(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			r.choices(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		fields := fieldsOf(v.Type())
		for _, key := range sortedKeys(fields) {
			field := v.FieldByIndex(fields[key])
			if allowed := choicesOf(v.Type().FieldByIndex(fields[key])); allowed != nil {
				r.chosen(field, join(path, key), allowed)
			} else {
				r.choices(field, join(path, key))
			}
		}
	}
}

// chosen reports the texts of a field, alone or in a list or a mapping, that are
// none of those that it allows.
func (r *report) chosen(v reflect.Value, path string, allowed []string) {
	switch v.Kind() {
	case reflect.String:
		oneOf(r, path, v.String(), allowed...)
	case reflect.Slice:
		for i := range v.Len() {
			r.chosen(v.Index(i), fmt.Sprintf("%s[%d]", path, i), allowed)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			r.chosen(v.MapIndex(key), join(path, key.String()), allowed)
		}
	}
}
