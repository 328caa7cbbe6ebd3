package tool

import (
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema: 2020-12 unless its $schema names another
// draft. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema compiles a schema. References to other documents are refused:
// a schema must not make the loop fetch anything.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	return compile(raw, refuse{})
}

// refuse is the loader of other documents.
type refuse struct{}

func (refuse) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, and references to other documents are not followed", url)
}

func compile(raw json.RawMessage, loader jsonschema.URLLoader) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be compiled: %v", p)
		}
	}()
	doc, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(loader)
	const url = "mem:///schema.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled}, nil
}

// Validate checks a JSON value. The error lists the violations, each with the
// path of the value that it is about, in words that a model can act on. A
// value that names a member twice is refused whatever the schema says, because
// readers differ in which of the two they take.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := parse(raw)
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	return s.validate(v)
}

func (s *Schema) validate(v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be validated: %v", p)
		}
	}()
	return s.explain(s.compiled.Validate(v))
}
