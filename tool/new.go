package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/event"
)

// New makes a tool from a function. The schema comes from the fields of A: the json
// tags name them, a jsonschema tag describes them, and omitempty makes them optional. A
// type that implements encoding.TextUnmarshaler is described as a string. R is
// [Result], a pointer to one, a string, a byte slice, or any value that encodes as
// JSON.
//
// The tool is not declared read-only or concurrent, so its calls are at_most_once; set
// the fields of the returned Tool to change that.
//
// New panics if A cannot be described by a schema, or if no call could provide a value
// of it, which is a mistake in the program.
func New[A, R any](name, description string, run func(ctx context.Context, args A) (R, error)) Tool {
	return NewWithCall(name, description, func(ctx context.Context, _ Call, args A) (R, error) { return run(ctx, args) })
}

// NewWithCall is [New] for a function that needs the whole call.
func NewWithCall[A, R any](name, description string, run func(ctx context.Context, c Call, args A) (R, error)) Tool {
	schema, err := SchemaOf[A]()
	if err != nil {
		panic(fmt.Sprintf("tool: arguments of %s: %v", name, err))
	}
	return Tool{
		Name: name, Description: description, Schema: schema, declared: &declared{raw: schema},
		Run: func(ctx context.Context, c Call) (Result, error) {
			args, err := decode[A](c.Args)
			if err != nil {
				return Result{}, err
			}
			out, err := run(ctx, c, args)
			if err != nil {
				return resultBefore(out), err
			}
			return resultOf(out)
		},
	}
}

// decode decodes arguments into a Go value. JSON Schema treats 3.0 and 3e0 as integers,
// but encoding/json does not, so it decodes the canonical form.
func decode[A any](raw json.RawMessage) (A, error) {
	var args A
	err := json.Unmarshal(raw, &args)
	if err == nil {
		return args, nil
	}
	if v, parseErr := parse(raw); parseErr == nil {
		var again A
		if json.Unmarshal(appendCanonical(nil, v), &again) == nil {
			return again, nil
		}
	}
	text := err.Error()
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = fmt.Sprintf("/%s: cannot be %s; a Go %s is wanted", strings.ReplaceAll(wrong.Field, ".", "/"), wrong.Value, wrong.Type)
	}
	return args, &Error{Type: event.ErrorInvalidArgs, Message: text, Err: err}
}

// SchemaOf returns the JSON Schema of a Go struct or map, from its json and
// jsonschema tags. Fields are required unless they have omitempty.
func SchemaOf[A any]() (json.RawMessage, error) {
	t := reflect.TypeFor[A]()
	schemas, err := readSchemas(t)
	if err != nil {
		return nil, err
	}
	s, err := jsonschema.For[A](&jsonschema.ForOptions{TypeSchemas: schemas})
	if err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("must be a struct or a map, not %s", t)
	}
	return json.Marshal(s)
}

// resultBefore returns the Result of a function; the zero value if it returned another
// type.
func resultBefore(out any) Result {
	switch r := out.(type) {
	case Result:
		return r
	case *Result:
		if r != nil {
			return *r
		}
	}
	return Result{}
}

func resultOf(out any) (Result, error) {
	switch v := out.(type) {
	case Result, *Result:
		return resultBefore(out), nil
	case string:
		return Result{Output: v}, nil
	case []byte:
		return Result{Output: string(v)}, nil
	}
	b, err := readable(out)
	if err != nil {
		return Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return Result{Output: string(b)}, nil
}
