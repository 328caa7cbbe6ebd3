package expr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Never reports the comparisons of a checked expression with a text that its other side
// can never be, because their result is constant.
func (c *Checker) Never(expression string, scope Scope) Errors {
	text, shifts := withStepNames(expression)
	parsed, issues := c.base.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	tree := parsed.NativeRep()
	var found Errors
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		for _, message := range scope.never(e) {
			at := tree.SourceInfo().GetStartLocation(e.ID())
			line, column := placeIn(text, at.Line(), at.Column(), shifts)
			found = append(found, &Error{Fault: NeverThere, Line: line, Column: column, Message: message})
		}
	}))
	slices.SortStableFunc(found, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

// never returns messages about the texts in a comparison that can never occur.
func (s Scope) never(e ast.Expr) (messages []string) {
	if e.Kind() != ast.CallKind {
		return nil
	}
	call, ends := e.AsCall(), false
	sides := call.Args()
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.In:
	case "endsWith":
		if !call.IsMemberFunction() {
			return nil
		}
		ends, sides = true, append([]ast.Expr{call.Target()}, sides...)
	default:
		return nil
	}
	if len(sides) != 2 {
		return nil
	}
	path := pathOf(sides[0])
	texts := textsOf(sides[1])
	if call.FunctionName() != operators.In && !ends && path == nil {
		path, texts = pathOf(sides[1]), textsOf(sides[0])
	}
	can, verb := s.canBe(path), "is never"
	if ends {
		verb = "never ends with"
	}
	for _, text := range texts {
		if why := can.not(text, ends); why != "" {
			messages = append(messages, fmt.Sprintf("%s %s %q, so this always gives the same: %s", strings.Join(path, "."), verb, text, why))
		}
	}
	return messages
}

// texts describes the possible texts of a value: one of a set, or one without a final
// line end.
type texts struct {
	known   bool
	of      []string
	because string
	trimmed bool
}

// not returns why the value can never be a text, or end with it; empty if it can.
func (t texts) not(text string, ends bool) string {
	switch {
	case t.trimmed && text != "" && strings.TrimRight(text, "\r\n") != text:
		return "the output of a command is without the line ends behind it"
	case !t.known || ends || slices.Contains(t.of, text):
		return ""
	case len(t.of) == 0:
		return "it is no text"
	}
	why := "it can be " + strings.Join(t.of, ", ")
	if t.because != "" {
		why += "; " + t.because
	}
	return why
}

// canBe returns what is known about the value at a path.
func (s Scope) canBe(path []string) texts {
	step := func(of Step, path []string) texts {
		switch {
		case len(path) == 1 && path[0] == "status":
			can := texts{known: true, of: []string{"completed", "skipped"}, because: "nothing is looked at behind a step that failed or was cancelled"}
			if s.Place == Until && s.Single {
				can.of, can.because = append(can.of, "failed", "cancelled"), ""
			}
			return can
		case len(path) == 1 && path[0] == "content":
			return texts{trimmed: of.Command}
		case path[0] == "result":
			return ofSchema(of.Result, path[1:])
		}
		return texts{}
	}
	switch {
	case len(path) > 2 && path[0] == "steps":
		if of, known := s.Steps[path[1]]; known {
			return step(of, path[2:])
		}
	case len(path) > 0 && path[0] == "item":
		return s.itemCanBe(path[1:])
	case len(path) > 0 && s.Place == Until && s.Single:
		return step(s.Self, path)
	case len(path) > 1 && path[0] == "previous":
		return step(Step{}, path[1:])
	}
	return texts{}
}

// itemCanBe returns the possible values of the items in the file.
func (s Scope) itemCanBe(path []string) texts {
	if s.Items == nil {
		return texts{}
	}
	can := texts{known: true}
	for _, item := range s.Items {
		value := item
		for _, key := range path {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(value, &object) // an item that is not an object has no such value
			value = object[key]
		}
		var text *string
		if json.Unmarshal(value, &text) == nil && text != nil && !slices.Contains(can.of, *text) {
			can.of = append(can.of, *text)
		}
	}
	return can
}

// ofSchema returns the possible values at a path by a schema.
func ofSchema(schema json.RawMessage, path []string) texts {
	var of struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Enum       []any                      `json:"enum"`
		Const      any                        `json:"const"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &of) != nil {
		return texts{}
	}
	if len(path) > 0 {
		return ofSchema(of.Properties[path[0]], path[1:])
	}
	if of.Const != nil {
		of.Enum = []any{of.Const}
	}
	can := texts{known: len(of.Enum) > 0}
	for _, one := range of.Enum {
		if text, is := one.(string); is {
			can.of = append(can.of, text)
		}
	}
	return can
}

// pathOf returns the path of a variable in an expression, nil for anything else.
func pathOf(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		if above := pathOf(e.AsSelect().Operand()); above != nil && !e.AsSelect().IsTestOnly() {
			return append(above, e.AsSelect().FieldName())
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index {
			return nil
		}
		above, key := pathOf(call.Args()[0]), textsOf(call.Args()[1])
		if above != nil && len(key) == 1 && call.Args()[1].Kind() == ast.LiteralKind {
			return append(above, key[0])
		}
	}
	return nil
}

// textsOf returns the texts of a literal, or of a list of literals.
func textsOf(e ast.Expr) []string {
	switch e.Kind() {
	case ast.LiteralKind:
		if text, is := e.AsLiteral().Value().(string); is {
			return []string{text}
		}
	case ast.ListKind:
		var all []string
		for _, one := range e.AsList().Elements() {
			all = append(all, textsOf(one)...)
		}
		return all
	}
	return nil
}
