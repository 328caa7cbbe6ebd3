package tool

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// readSchemas are the schemas of those types within a type that encoding/json
// reads from something else than they look like: by their look alone a model
// would be asked for what then cannot be read. An error is about what can be
// read from nothing, or is read from another place.
func readSchemas(t reflect.Type) (map[reflect.Type]*jsonschema.Schema, error) {
	found := map[reflect.Type]*jsonschema.Schema{}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return found, collectWithin(t, found, map[reflect.Type]bool{t: true})
}

func collect(t reflect.Type, found map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return nil
	}
	seen[t] = true
	if s := readSchema(t); s != nil {
		found[t] = s
		return nil
	}
	return collectWithin(t, found, seen)
}

func collectWithin(t reflect.Type, found map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return collect(t.Elem(), found, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("nothing can be read into the interface %s", t)
		}
	case reflect.Struct:
		for field := range t.Fields() {
			if err := checkField(t, field); err != nil {
				return err
			}
			if !field.IsExported() && !field.Anonymous || field.Tag.Get("json") == "-" {
				continue
			}
			if err := collect(field.Type, found, seen); err != nil {
				return fmt.Errorf("%s.%s: %w", t, field.Name, err)
			}
		}
	}
	return nil
}

// checkField refuses a field that the schema would have elsewhere, or otherwise,
// than encoding/json.
func checkField(t reflect.Type, field reflect.StructField) error {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	for option := range strings.SplitSeq(options, ",") {
		if option == "string" {
			return fmt.Errorf("%s.%s: a number within a string cannot be described: leave the option string out", t, field.Name)
		}
	}
	embedded := field.Type
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	if field.Anonymous && name != "-" && (name != "" || embedded.Kind() != reflect.Struct && field.IsExported()) {
		return fmt.Errorf("%s.%s: an embedded field that is one of its own cannot be described: give it a name in Go", t, field.Name)
	}
	return nil
}

// readSchema describes a type that is read in another way than its kind says; nil
// for every other.
func readSchema(t reflect.Type) *jsonschema.Schema {
	switch pointer := reflect.PointerTo(t); {
	case t == reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "a duration in nanoseconds"}
	case t == reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	case t == reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &jsonschema.Schema{Type: "string"}
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		if describesItself(t) {
			return nil
		}
		return &jsonschema.Schema{Types: []string{"null", "boolean", "number", "string", "array", "object"}}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && readSchema(t.Elem()) == nil:
		return &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	}
	return nil
}

// describesItself says that a type which reads itself has fields to read: it does
// so to fill in what is missing, or to check it.
func describesItself(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for field := range t.Fields() {
		if field.IsExported() {
			return true
		}
	}
	return false
}
