// Package schema returns the JSON Schema of each kind of file, with a description and
// an example for each key.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/llm/scripted"
)

// Kinds returns the kinds of files that have a schema.
func Kinds() []string { return []string{"agent", "workflow", "goal", "script", "config"} }

// Of returns the JSON Schema (2020-12) of a kind of file. It is generated from the
// types that the strict parser fills, so the two cannot differ in a key or a type. Only
// the parser checks rules between keys.
func Of(kind string) ([]byte, error) {
	said, err := readProperties()
	if err != nil {
		return nil, err
	}
	b := &schemaBuilder{defs: schema{}, said: said}
	var root schema
	switch kind {
	case "agent":
		root = agentSchema(b)
	case "workflow":
		root = b.of(reflect.TypeFor[workflow.Workflow](), nil)
	case "goal":
		root = b.of(reflect.TypeFor[spec.Goal](), nil)
	case "script":
		root = b.of(scripted.FileType(), nil)
	case "config":
		root = b.of(reflect.TypeFor[spec.Config](), nil)
	default:
		return nil, fmt.Errorf("schema: there is no schema of %q; there are %s", kind, strings.Join(Kinds(), ", "))
	}
	whole := schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://pawl.run/schema/" + kind + ".json",
		"title":   "Pawl " + kind + " file",
		"$defs":   b.defs,
	}
	for k, v := range root {
		whole[k] = v
	}
	if b.err != nil {
		return nil, b.err
	}
	text, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: write the schema: %w", err)
	}
	return append(text, '\n'), nil
}

type schema map[string]any

// agentSchema allows a file of ALDO's version to have unknown keys, as the parser does.
// Its iteration block is still checked.
func agentSchema(b *schemaBuilder) schema {
	agent := b.of(reflect.TypeFor[spec.Agent](), nil)
	iteration := b.of(reflect.TypeFor[spec.Iteration](), nil)
	return schema{
		"type": "object",
		"if":   schema{"properties": schema{"apiVersion": schema{"const": spec.VersionAldo}}, "required": []string{"apiVersion"}},
		"then": schema{"properties": schema{"iteration": iteration}},
		"else": agent,
	}
}

// schemaBuilder collects the schemas of structs by the names of their types.
type schemaBuilder struct {
	defs schema
	said properties
	err  error
}

// schemaOf is a type with several forms that returns its own schema.
type schemaOf interface{ JSONSchema() map[string]any }

// of returns the schema of a type. allowed lists the values that its texts may have,
// nil for any.
func (b *schemaBuilder) of(t reflect.Type, allowed []string) schema {
	if t.Kind() == reflect.Pointer {
		return b.of(t.Elem(), allowed)
	}
	own, several := reflect.New(t).Interface().(schemaOf)
	if several && (t.Kind() != reflect.Struct || len(decode.FieldsOf(t)) == 0) {
		return own.JSONSchema()
	}
	var s schema
	switch t.Kind() {
	case reflect.Struct:
		s = b.object(t)
	case reflect.Slice:
		s = schema{"type": "array", "items": b.of(t.Elem(), allowed)}
	case reflect.Map:
		s = schema{"type": "object", "additionalProperties": b.of(t.Elem(), allowed)}
	case reflect.String:
		s = schema{"type": "string"}
		if allowed != nil {
			s["enum"] = allowed
		}
	case reflect.Bool:
		s = schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		s = schema{"type": "integer"}
	case reflect.Float64:
		s = schema{"type": "number"}
	default:
		return schema{}
	}
	if several {
		return schema{"anyOf": []any{s, own.JSONSchema()}}
	}
	if t.Kind() == reflect.Struct {
		if short, has := decode.ShortForm(t); has {
			return schema{"anyOf": []any{s, b.of(short.Type, decode.ChoicesOf(short))}}
		}
	}
	return s
}

// object returns a reference to a struct's schema, which is defined once.
func (b *schemaBuilder) object(t reflect.Type) schema {
	name := strings.TrimPrefix(t.Name(), "file")
	ref := schema{"$ref": "#/$defs/" + name}
	if _, done := b.defs[name]; done {
		return ref
	}
	b.defs[name] = nil
	properties := schema{}
	fields := decode.FieldsOf(t)
	for _, key := range decode.BuiltKeys(t) {
		f := t.FieldByIndex(fields[key])
		properties[key] = b.of(f.Type, decode.ChoicesOf(f))
		if decode.TakesNone(f) {
			properties[key] = schema{"anyOf": []any{properties[key], schema{"const": "none"}}}
		}
		if err := b.said.of(name, key).describe(key, properties[key].(schema)); err != nil {
			b.err = err
		}
	}
	b.defs[name] = schema{"type": "object", "properties": properties, "additionalProperties": false}
	return ref
}
