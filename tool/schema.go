package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema: 2020-12 unless its $schema names another
// draft. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	plain    *plain
	// mu serializes validations, and effort counts the steps of the current one.
	mu     sync.Mutex
	effort effort
}

// CompileSchema compiles a schema. It rejects references to other documents: a schema
// must not make the loop fetch anything.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	return compile(raw, refuse{})
}

// SchemaError is an error in a schema, with its place.
type SchemaError struct {
	// At is the path of the wrong keyword.
	At      []string
	Message string
}

// Error returns the place as a JSON pointer, and the message.
func (e *SchemaError) Error() string { return at(e.At) + e.Message }

// schemaError finds the place in the validator's tree of errors.
func schemaError(err error) error {
	invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return err
	}
	root, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err)
	if !ok {
		return err
	}
	leaf := deepest(root)
	x := explainer{root: new(jsonschema.Schema), printer: message.NewPrinter(language.English)}
	return &SchemaError{At: leaf.InstanceLocation, Message: x.words(leaf)}
}

// deepest returns the first of the errors with the most specific place.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		if leaf := deepest(cause); len(best.Causes) > 0 || len(leaf.InstanceLocation) > len(best.InstanceLocation) {
			best = leaf
		}
	}
	return best
}

// refuse is a loader that refuses other documents.
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
	s = &Schema{plain: plainOf(doc)}
	// With the counting keyword the compiler checks less of the schema, so the first
	// compilation is without it.
	for _, counted := range []bool{false, true} {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseLoader(loader)
		if counted {
			s.effort.count(c)
		}
		const url = "mem:///schema.json"
		if err := c.AddResource(url, doc); err != nil {
			return nil, err
		}
		if s.compiled, err = c.Compile(url); err != nil {
			return nil, schemaError(err)
		}
	}
	return s, nil
}

// Validate checks a JSON value. The error lists the violations, each with the path of
// the value, in words that a model can act on. It rejects a value with duplicate
// members, because parsers differ in which one they use.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := parse(raw)
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	return s.validate(v, len(raw))
}

// validate checks a decoded value; size is the length of its text.
func (s *Schema) validate(v any, size int) error { return s.explain(s.check(v, size)) }

// check is [Schema.validate] with the validator's own error.
func (s *Schema) check(v any, size int) (err error) {
	if s.plain.fits(v) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be validated: %v", p)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effort.begin(size)
	return s.compiled.Validate(v)
}

// maxSteps bounds the number of subschemas that a value is validated against, in
// addition to one for each of its bytes. Nested alternatives multiply: a few hundred
// bytes could take hours and all memory.
const maxSteps = 100_000

// effort counts the steps of a validation. It is a keyword that every schema gets.
type effort struct{ steps, most int }

func (e *effort) begin(size int) { e.steps, e.most = 0, maxSteps+size }

// Validate counts a step, and more steps at greater depth, because each violation
// copies its path. It panics at the limit, because a validation cannot be stopped
// otherwise.
func (e *effort) Validate(ctx *jsonschema.ValidatorContext, _ any) {
	if e.steps += 1 + len(ctx.ValueLocation())/8; e.steps > e.most {
		panic(fmt.Sprintf("it takes more than %d checks, because alternatives are nested in it too deep", e.most))
	}
}

// count makes a compiler add the keyword to each schema.
func (e *effort) count(c *jsonschema.Compiler) {
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "mem:///effort",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return e, nil },
	})
	c.AssertVocabs()
}
