package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Limits of the report about one value: a model corrects a few mistakes at a time, and
// a thousand of them are usually one.
const (
	maxViolations    = 10
	maxViolationText = 300
	maxNames         = 30
)

// explain converts the validator's tree of errors to sentences.
func (s *Schema) explain(err error) error {
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	x := explainer{root: s.compiled, printer: message.NewPrinter(language.English)}
	lines, more := x.violations(nil, invalid)
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(lines, "; "))
}

type explainer struct {
	root    *jsonschema.Schema
	printer *message.Printer
}

// violations appends the leaves of the tree to lines; alternatives of which none
// matches stay together. Violations beyond the limit are only counted, because there
// may be one for each of a million items.
func (x explainer) violations(lines []string, e *jsonschema.ValidationError) (all []string, more int) {
	if len(e.Causes) > 0 && !alternative(e) {
		for _, cause := range e.Causes {
			var left int
			lines, left = x.violations(lines, cause)
			more += left
		}
		return lines, more
	}
	if len(lines) == maxViolations {
		return lines, 1
	}
	line := at(e.InstanceLocation) + clip(x.words(e), maxViolationText)
	if alternative(e) {
		line = x.alternatives(e)
	}
	if len(lines) > 0 && lines[len(lines)-1] == line {
		return lines, 0
	}
	return append(lines, line), 0
}

func alternative(e *jsonschema.ValidationError) bool {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return len(e.Causes) > 0
	}
	return false
}

func (x explainer) alternatives(e *jsonschema.ValidationError) string {
	var forms []string
	for _, cause := range e.Causes {
		lines, _ := x.violations(nil, cause)
		forms = append(forms, strings.Join(lines, " and "))
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	if len(forms) == 1 {
		return forms[0]
	}
	return at(e.InstanceLocation) + clip("fits none of the allowed forms: "+strings.Join(forms, ", or "), 2*maxViolationText)
}

func (x explainer) words(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return quoted(k.Missing) + plural(len(k.Missing), " is", " are") + " missing"
	case *kind.AdditionalProperties:
		return quoted(k.Properties) + plural(len(k.Properties), " is", " are") + " not known" + x.known(e.InstanceLocation)
	case *kind.FalseSchema:
		return "is not allowed"
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, not %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, not %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, not %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, not %d", k.Want, k.Got)
	case *kind.Enum:
		return "value must be " + plural(len(k.Want), "", "one of ") + values(k.Want)
	case *kind.Const:
		return "value must be " + values([]any{k.Want})
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match the pattern %s", strconv.Quote(clip(k.Got, 60)), k.Want)
	}
	return e.ErrorKind.LocalizedString(x.printer)
}

// known lists the allowed members of an object, if the schema lists them.
func (x explainer) known(location []string) string {
	s := follow(x.root)
	for _, step := range location {
		if s = member(s, step); s == nil {
			return ""
		}
	}
	if len(s.Properties) == 0 {
		return ""
	}
	return "; known: " + quoted(slices.Sorted(maps.Keys(s.Properties)))
}

func member(s *jsonschema.Schema, step string) *jsonschema.Schema {
	if p := s.Properties[step]; p != nil {
		return follow(p)
	}
	if s.Items2020 != nil {
		return follow(s.Items2020)
	}
	if items, ok := s.Items.(*jsonschema.Schema); ok && items != nil {
		return follow(items)
	}
	return nil
}

func follow(s *jsonschema.Schema) *jsonschema.Schema {
	for range maxDepth {
		if s.Ref == nil || len(s.Properties) > 0 {
			break
		}
		s = s.Ref
	}
	return s
}

// at returns a place as a JSON pointer, "" for the whole value.
func at(location []string) string {
	if len(location) == 0 {
		return ""
	}
	var b strings.Builder
	for _, step := range location {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1"))
	}
	return clip(b.String(), maxViolationText) + ": "
}

func quoted(names []string) string {
	more := len(names) - maxNames
	names = slices.Clone(names[:min(len(names), maxNames)])
	for i, n := range names {
		names[i] = strconv.Quote(clip(n, 60))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// values lists allowed values in the form in which a call must give them.
func values(allowed []any) string {
	texts := make([]string, 0, len(allowed))
	for _, v := range allowed[:min(len(allowed), maxNames)] {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			b.Reset()
			fmt.Fprint(&b, v)
		}
		texts = append(texts, strings.TrimSpace(b.String()))
	}
	if more := len(allowed) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
