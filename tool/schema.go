package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema (2020-12 unless it names another draft).
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema compiles a schema. References to other documents are refused:
// a schema must not make the loop fetch anything.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
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

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %s, and references to other documents are not followed", url)
}

// Validate checks a JSON value. The error lists every violation with the path
// of the value that it is about, in words that a model can act on.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	err = s.compiled.Validate(v)
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	printer := message.NewPrinter(language.English)
	var lines []string
	collect(invalid, printer, &lines)
	return errors.New(strings.Join(lines, "; "))
}

func collect(e *jsonschema.ValidationError, p *message.Printer, lines *[]string) {
	if len(e.Causes) == 0 {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		*lines = append(*lines, at+": "+e.ErrorKind.LocalizedString(p))
		return
	}
	for _, cause := range e.Causes {
		collect(cause, p, lines)
	}
}
