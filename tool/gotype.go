package tool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// readSchemas returns the schemas of those types within a type that encoding/json
// decodes from another form than their kind suggests; a schema by kind would ask a
// model for values that cannot be decoded. It returns an error for a required value
// that cannot be decoded from any JSON, or a value that is decoded from another place.
func readSchemas(t reflect.Type) (map[reflect.Type]*jsonschema.Schema, error) {
	c := collector{found: map[reflect.Type]*jsonschema.Schema{}, seen: map[place]bool{}}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c.seen[place{t, false}] = true
	return c.found, c.collectWithin(place{t, false})
}

type collector struct {
	found map[reflect.Type]*jsonschema.Schema
	seen  map[place]bool
}

// place is a type at a place that a call must provide, or may omit.
type place struct {
	reflect.Type
	optional bool
}

func (c collector) collect(p place) error {
	for p.Kind() == reflect.Pointer {
		p.Type = p.Elem()
	}
	if c.seen[p] {
		return nil
	}
	c.seen[p] = true
	if s := readSchema(p.Type); s != nil {
		c.found[p.Type] = s
		return nil
	}
	return c.collectWithin(p)
}

func (c collector) collectWithin(p place) error {
	switch p.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return c.collect(place{p.Elem(), p.optional})
	case reflect.Interface:
		switch {
		case p.NumMethod() > 0 && !p.optional:
			return fmt.Errorf("nothing can be read into the interface %s", p)
		case p.NumMethod() > 0:
			// encoding/json decodes only null into it.
			c.found[p.Type] = &jsonschema.Schema{Types: []string{"null"}}
		}
	case reflect.Struct:
		for field := range p.Fields() {
			if !isRead(field) {
				continue
			}
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			settings := strings.Split(options, ",")
			if err := checkField(field, name, settings); err != nil {
				return fmt.Errorf("%s.%s: %w", p, field.Name, err)
			}
			optional := p.optional || slices.Contains(settings, "omitempty") || slices.Contains(settings, "omitzero")
			if err := c.collect(place{field.Type, optional}); err != nil {
				return fmt.Errorf("%s.%s: %w", p, field.Name, err)
			}
		}
	}
	return nil
}

// isRead reports whether encoding/json decodes a field, or the fields of an embedded
// one.
func isRead(field reflect.StructField) bool {
	return field.Tag.Get("json") != "-" &&
		(field.IsExported() || field.Anonymous && behindPointer(field.Type).Kind() == reflect.Struct)
}

func behindPointer(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// checkField rejects a field whose name or form in the schema differs from
// encoding/json.
func checkField(field reflect.StructField, name string, settings []string) error {
	t := behindPointer(field.Type)
	if slices.Contains(settings, "string") && isScalar(t) {
		return errors.New("a value within a string cannot be described: leave the option string out")
	}
	if field.Anonymous && (name != "" || t.Kind() != reflect.Struct) {
		return errors.New("an embedded field that is one of its own cannot be described: give it a name in Go")
	}
	return nil
}

func isScalar(t reflect.Type) bool {
	return t.Kind() == reflect.Bool || t.Kind() == reflect.String || isNumber(t)
}

func isNumber(t reflect.Type) bool {
	return reflect.Int <= t.Kind() && t.Kind() <= reflect.Float64
}

// readSchema returns the schema of a type that is not decoded by its kind; nil for
// every other.
func readSchema(t reflect.Type) *jsonschema.Schema {
	switch pointer := reflect.PointerTo(t); {
	case t == reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "a duration in nanoseconds"}
	case t == reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	case t == reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && (opaque(t) || !pointer.Implements(reflect.TypeFor[json.Unmarshaler]())):
		return &jsonschema.Schema{Type: "string"}
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return readsItself(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && readSchema(t.Elem()) == nil:
		return &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	}
	return nil
}

// readsItself returns the schema of a type with its own decoder; nil if the decoder
// presumably accepts the form of the kind and only validates it or adds defaults. A
// number with its own decoder is often written as a name.
func readsItself(t reflect.Type) *jsonschema.Schema {
	switch {
	case isNumber(t):
		return &jsonschema.Schema{Types: []string{"number", "string"}}
	case !opaque(t):
		return nil
	}
	return &jsonschema.Schema{
		Types: []string{"null", "boolean", "number", "string", "array", "object"},
		// Services reject an array without items, and some reject the schema true.
		Items: &jsonschema.Schema{Description: "any value"},
	}
}

// opaque reports whether a type's kind says nothing about its JSON form.
func opaque(t reflect.Type) bool { return !isNumber(t) && !isScalar(t) && !hasExportedField(t) }

func hasExportedField(t reflect.Type) bool {
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
