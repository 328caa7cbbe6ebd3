package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
)

// InputRequired is the error of an attempt that needs a person's input. The run asks
// for it, possibly for days and in another process, and makes another attempt at the
// same call, with the same key and the answer in [Call.Input].
type InputRequired struct{ Form event.Form }

// Error returns the requested input.
func (e *InputRequired) Error() string { return "a person's input is needed: " + e.Form.Message }

// Limits of a form.
const (
	maxFormMessage = 8 << 10
	maxFormSchema  = 64 << 10
	maxFormState   = 256 << 10
)

// CheckForm returns why a form cannot be shown to a person, or nil.
func CheckForm(f event.Form) error {
	switch {
	case len(f.Message) > maxFormMessage || len(f.Schema) > maxFormSchema || len(f.URL) > maxFormMessage || len(f.Command) > maxFormMessage || len(f.State) > maxFormState:
		return fmt.Errorf("the form is too large: its message may have %d KiB, its schema %d KiB and its state %d KiB", maxFormMessage>>10, maxFormSchema>>10, maxFormState>>10)
	case f.State != nil && !json.Valid(f.State):
		return errors.New("the state of the form is no JSON")
	case f.URL != "" && f.Schema != nil:
		return errors.New("the form has both a schema and a URL")
	case f.URL != "":
		u, err := url.Parse(f.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New("the URL of the form is no address of a web page")
		}
		return nil
	}
	var s struct{ Type string }
	if err := json.Unmarshal(f.Schema, &s); err != nil || s.Type != "object" {
		return errors.New("the schema of the form is not one of an object")
	}
	if _, err := CompileSchema(f.Schema); err != nil {
		return fmt.Errorf("the schema of the form: %w", err)
	}
	return nil
}

// InputError describes the errors in an answer to a form.
type InputError struct{ Fields []FieldError }

// FieldError describes the error in a field; Field is empty for the whole answer.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error lists the fields with their errors.
func (e *InputError) Error() string {
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = f.Message
		if f.Field != "" {
			lines[i] = f.Field + ": " + f.Message
		}
	}
	return strings.Join(lines, "; ")
}

// CheckInput validates an answer against the schema of its form, which is nil for a
// form that has only a URL. The error is an [*InputError].
func CheckInput(schema, input json.RawMessage) error {
	whole := func(message string) error { return &InputError{Fields: []FieldError{{Message: message}}} }
	var values map[string]json.RawMessage
	if err := json.Unmarshal(input, &values); err != nil || values == nil {
		return whole("the answer is no JSON object")
	}
	if schema == nil {
		if len(values) > 0 {
			return whole("this question takes no input: it is approved once what the page asks for is done")
		}
		return nil
	}
	compiled, err := CompileSchema(schema)
	if err != nil {
		return whole("the schema of the form: " + err.Error())
	}
	wrong := compiled.Validate(input)
	if wrong == nil {
		return nil
	}
	found := &InputError{}
	for _, f := range FieldsOf(schema) {
		value, there := values[f.Name]
		delete(values, f.Name)
		switch own, err := CompileSchema(f.Schema); {
		case !there && f.Required:
			found.Fields = append(found.Fields, FieldError{f.Name, "is missing"})
		case there && err == nil:
			if err := own.Validate(value); err != nil {
				found.Fields = append(found.Fields, FieldError{f.Name, err.Error()})
			}
		}
	}
	if len(found.Fields) == 0 {
		return whole(wrong.Error())
	}
	return found
}

// Field is one field of a form.
type Field struct {
	Name     string
	Title    string
	About    string
	Type     string
	Required bool
	// Default is the value of an omitted field, nil for none.
	Default json.RawMessage
	// Choices are the allowed values of a text, nil for any.
	Choices []Choice
	Schema  json.RawMessage
}

// Choice is one of the values of a field.
type Choice struct{ Value, Title string }

// FieldsOf returns the fields of a form's schema in their order. A schema that is not
// an object's has none.
func FieldsOf(schema json.RawMessage) []Field {
	var s struct {
		Properties json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var fields []Field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fields
		}
		f := Field{Name: fmt.Sprint(name)}
		if dec.Decode(&f.Schema) != nil {
			return fields
		}
		f.Required = slices.Contains(s.Required, f.Name)
		f.read()
		fields = append(fields, f)
	}
	return fields
}

// read sets the field from its schema.
func (f *Field) read() {
	type titled struct {
		Const json.RawMessage
		Title string
	}
	type choices struct {
		Enum         []json.RawMessage
		EnumNames    []string
		OneOf, AnyOf []titled
	}
	var s struct {
		choices
		Type, Title, Description string
		Default                  json.RawMessage
		Items                    choices
	}
	if json.Unmarshal(f.Schema, &s) != nil {
		return
	}
	f.Title, f.About, f.Type, f.Default = s.Title, s.Description, s.Type, s.Default
	from := s.choices
	if f.Type == "array" {
		from = s.Items
	}
	for i, value := range from.Enum {
		c := Choice{Value: plainValue(value)}
		if i < len(from.EnumNames) {
			c.Title = from.EnumNames[i]
		}
		f.Choices = append(f.Choices, c)
	}
	for _, one := range append(from.OneOf, from.AnyOf...) {
		if one.Const != nil {
			f.Choices = append(f.Choices, Choice{plainValue(one.Const), one.Title})
		}
	}
}

// plainValue returns a string without quotes, and any other value as JSON.
func plainValue(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// Run is the run of a call in progress.
type Run interface {
	// Keep journals the data with which the tool can ask for the result of work that it
	// started elsewhere. The tool calls it before it waits for the result.
	Keep(ctx context.Context, task json.RawMessage) error
	// Ask asks a person who is present for input at once. The error is an
	// [*InputRequired] if there is no person or no answer: the attempt then ends with
	// it, and the next one has the answer.
	Ask(ctx context.Context, f event.Form) (event.FormAnswer, error)
	// Allowed returns a person's answer to the form of an earlier call, or of this one,
	// that asked for this consent ([event.Form.Consent]), and whether there is one.
	Allowed(consent string) (allowed, decided bool)
	// Sample lets a model answer, as a run below the call's. A person must have allowed
	// it, with the agent's name as the consent.
	Sample(ctx context.Context, s Sampling) (Sampled, error)
	// Report shows those who watch the run how far the call is, up to total, which is 0
	// if it is not known. Reports are not journalled, and those that follow each other
	// closely are dropped.
	Report(done, total float64, message string)
	// Print publishes what the call's program has printed to the subscribers of the run,
	// before the call has a result. The engine removes secrets. Print returns at once and
	// keeps no reference to output.
	Print(output []byte)
}

// NotYet is the error of an attempt whose task, see [Run.Keep], is not finished.
// Another attempt asks for its result after Wait; a run does not stay in its process
// for a long wait.
type NotYet struct{ Wait time.Duration }

// Error reports that the task is not finished.
func (e *NotYet) Error() string {
	return "the task goes on; it can be asked for after " + e.Wait.String()
}
