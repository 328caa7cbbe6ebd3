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

// maxLayers bounds how often a value is corrected: texts may hold texts.
const maxLayers = 8

// fit holds arguments to the schema. Some models write null for each property that
// they leave out, and numbers, booleans, lists and objects as text. Where correcting
// that is all that is needed, corrected are the arguments that fit; else it is nil, and
// the error is about the arguments as they are.
func (s *Schema) fit(raw json.RawMessage, v any) (corrected json.RawMessage, err error) {
	err = s.validate(v, len(raw))
	if err == nil {
		return nil, nil
	}
	v, _ = parse(raw) // a copy, which may be changed
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

// reread writes corrected arguments down, and holds them once more to all that
// arguments are held to.
func (s *Schema) reread(v any, before error) (json.RawMessage, error) {
	raw := json.RawMessage(appendCanonical(nil, v))
	v, err := parse(raw)
	if err != nil || s.validate(v, len(raw)) != nil {
		return nil, before
	}
	return raw, nil
}

// slip is a place of a value that has not the type which the schema wants there.
type slip struct {
	at []string
	// want are the types that it may have.
	want []string
	// deep says that nothing below the place counts either.
	deep bool
}

// slips are the places whose type is wrong whichever alternatives of the schema are
// taken, by their paths. A place where one of them takes what is there is none.
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

// covers reports whether a branch of a schema takes nothing at a place.
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

// wanted are the types that a violation asks for, nil where it is about something
// else or the type that is there is one of them.
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

// correct changes what is at the place of a value: it leaves out a property that is
// null, and reads a text that holds a value of a type that is wanted. It reports
// whether it did. A property that is required is then missing, so that the value does
// not fit.
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
			return false // what is around it was corrected before
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

// wants reports whether a value that a text held has a type that is wanted. A text
// that says null is no null.
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

// violation is the validator's own tree of errors, nil where a value fits or cannot be
// held to the schema at all.
func (s *Schema) violation(v any, size int) *jsonschema.ValidationError {
	invalid, _ := errors.AsType[*jsonschema.ValidationError](s.check(v, size))
	return invalid
}
