package tool

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxLayers bounds how often a value is corrected, because texts may contain texts.
const maxLayers = 8

// fit validates arguments and corrects two common mistakes of models: null for an
// omitted property, and numbers, booleans, lists and objects as text. If that makes the
// arguments valid, corrected holds them; otherwise it is nil, and the error describes
// the original arguments.
func (s *Schema) fit(raw json.RawMessage, v any) (corrected json.RawMessage, err error) {
	err = s.validate(v, len(raw))
	if err == nil {
		return nil, nil
	}
	v, _ = parse(raw) // a copy that may be changed
	for range maxLayers {
		places := slips(s.violation(v, len(raw)))
		if len(places) == 0 {
			return nil, err
		}
		changed := false
		for _, p := range places {
			changed = p.correct(&v) || changed
		}
		if !changed {
			return nil, err
		}
		if s.check(v, len(raw)) == nil {
			return s.reread(v, err)
		}
	}
	return nil, err
}

// reread encodes corrected arguments and validates them again from their text.
func (s *Schema) reread(v any, before error) (json.RawMessage, error) {
	raw := json.RawMessage(appendCanonical(nil, v))
	v, err := parse(raw)
	if err != nil || s.validate(v, len(raw)) != nil {
		return nil, before
	}
	return raw, nil
}

// slip is a place in a value whose type differs from the schema's.
type slip struct {
	at []string
	// want lists the allowed types.
	want []string
	// deep reports that violations below the place do not count.
	deep bool
}

// slips returns, by path, the places whose type is wrong in every alternative of the
// schema. It omits a place whose value some alternative allows.
func slips(e *jsonschema.ValidationError) map[string]slip {
	if e == nil {
		return nil
	}
	if len(e.Causes) == 0 {
		want, deep := wanted(e.ErrorKind)
		if want == nil {
			return nil
		}
		return map[string]slip{path(e.InstanceLocation): {at: e.InstanceLocation, want: want, deep: deep}}
	}
	all := map[string]slip{}
	var branches []map[string]slip
	for _, cause := range e.Causes {
		of := slips(cause)
		branches = append(branches, of)
		for at, s := range of {
			s.want = slices.Concat(all[at].want, s.want)
			all[at] = s
		}
	}
	if alternative(e) {
		maps.DeleteFunc(all, func(_ string, s slip) bool {
			return slices.ContainsFunc(branches, func(b map[string]slip) bool { return !covers(b, s.at) })
		})
	}
	return all
}

// covers reports whether a branch of a schema allows nothing at a place.
func covers(branch map[string]slip, at []string) bool {
	if _, ok := branch[path(at)]; ok {
		return true
	}
	for n := range at {
		if s, ok := branch[path(at[:n])]; ok && s.deep {
			return true
		}
	}
	return false
}

func path(at []string) string { return strings.Join(at, "\x00") }

// wanted returns the types that a violation asks for, nil if it is about something else
// or the value has one of these types.
func wanted(violation jsonschema.ErrorKind) (types []string, deep bool) {
	var got any
	var allowed []any
	switch k := violation.(type) {
	case *kind.Type:
		return k.Want, true
	case *kind.Enum:
		got, allowed = k.Got, k.Want
	case *kind.Const:
		got, allowed = k.Got, []any{k.Want}
	}
	for _, v := range allowed {
		if typeOf(v) == typeOf(got) {
			return nil, false
		}
		types = append(types, typeOf(v))
	}
	return types, false
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// correct changes the value at the place: it removes a property that is null, and
// replaces a text by the value of a wanted type that it contains. It reports whether it
// changed anything. Removing a required property leaves the value invalid.
func (s slip) correct(root *any) bool {
	v, set := *root, func(v any) { *root = v }
	var object map[string]any
	for _, step := range s.at {
		switch in := v.(type) {
		case map[string]any:
			object, v, set = in, in[step], func(v any) { in[step] = v }
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				return false
			}
			object, v, set = nil, in[i], func(v any) { in[i] = v }
		default:
			return false // a containing value was corrected before
		}
	}
	if v == nil && object != nil {
		delete(object, s.at[len(s.at)-1])
		return true
	}
	text, ok := v.(string)
	if !ok {
		return false
	}
	held, err := parse([]byte(text))
	if err != nil || !s.wants(held) {
		return false
	}
	set(held)
	return true
}

// wants reports whether a value in a text has a wanted type. The text "null" does not
// count as null.
func (s slip) wants(v any) bool {
	switch t := typeOf(v); t {
	case "string", "null":
		return false
	case "number":
		return slices.Contains(s.want, "number") || slices.Contains(s.want, "integer")
	default:
		return slices.Contains(s.want, t)
	}
}

// violation returns the validator's tree of errors, nil if a value is valid or cannot
// be validated.
func (s *Schema) violation(v any, size int) *jsonschema.ValidationError {
	invalid, _ := errors.AsType[*jsonschema.ValidationError](s.check(v, size))
	return invalid
}
