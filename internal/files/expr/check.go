package expr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Place is the place of an expression, which determines its scope and its result.
type Place int

// The places.
const (
	// Condition is the condition of a step, evaluated before the step begins.
	Condition Place = iota
	// Until is the condition that ends a loop, evaluated after each iteration.
	Until
	// Items returns the items of a loop.
	Items
	// Round is the condition that ends the rounds of a team, evaluated after each.
	Round
	// Score judges an ended run by its extract and its cost.
	Score
)

// Loop is the kind of the enclosing loop.
type Loop int

// The kinds of loops. An expression in a loop sees its item or its iteration.
const (
	NoLoop Loop = iota
	Repeat
	ForEach
)

// Scope is what an expression may refer to.
type Scope struct {
	Place Place
	// In is the enclosing loop of a condition.
	In Loop
	// Steps holds the steps that can be named.
	Steps map[string]Step
	// Single reports that the loop repeats the step itself, whose content, result and
	// status Until sees; Self is that step.
	Single bool
	Self   Step
	// Items are the items of the enclosing loop, nil if they are unknown before the
	// run.
	Items []json.RawMessage
}

// Step is what is known about a step that an expression can name.
type Step struct {
	// Result is the schema of its result, nil if the result may be anything.
	Result json.RawMessage
	// Command reports that the step is a program, and ForEach that it has items.
	Command, ForEach bool
}

// meaning returns the variables that exist in some scope, with a description of where.
func meaning() map[string]string {
	return map[string]string{
		"steps":     "in conditions, in forEach, and in until of a loop with steps",
		"content":   "in until of a loop without steps",
		"result":    "in until of a loop without steps",
		"status":    "in until of a loop without steps",
		"iteration": "in until, and within a loop that repeats",
		"item":      "within a forEach loop",
		"index":     "within a forEach loop",
		"input":     "in terminate of a team",
		"round":     "in terminate of a team",
		"previous":  "in terminate of a team",

		"text":            inScores,
		"finalToolResult": inScores,
		"cycles":          inScores,
		"terminatedBy":    inScores,
		"cost":            inScores,
	}
}

const inScores = "in the evaluators of a suite"

// variables returns the variables of the scope by name.
func (s Scope) variables(t *schemas) map[string]*cel.Type {
	vars := map[string]*cel.Type{}
	if s.Place == Round {
		vars["input"], vars["round"], vars["previous"] = cel.StringType, cel.IntType, t.step("previous", Step{})
		return vars
	}
	if s.Place == Score {
		vars["text"], vars["terminatedBy"], vars["finalToolResult"] = cel.StringType, cel.StringType, cel.DynType
		vars["cycles"], vars["cost"] = cel.IntType, cel.DoubleType
		return vars
	}
	if s.Place != Until || !s.Single {
		vars["steps"] = cel.MapType(cel.StringType, cel.DynType)
		for id, step := range s.Steps {
			vars["steps."+id] = t.step(id, step)
		}
	}
	switch {
	case s.Place == Condition:
		vars["content"] = cel.StringType
	case s.Place == Until && s.Single:
		vars["content"], vars["status"] = cel.StringType, cel.StringType
		vars["result"] = t.result(s.Self.Result)
	}
	if s.Place == Until || s.In == Repeat {
		vars["iteration"] = cel.IntType
	}
	if s.In == ForEach {
		vars["item"], vars["index"] = cel.DynType, cel.IntType
	}
	return vars
}

// Checker checks expressions. It is safe for concurrent use.
type Checker struct{ base *cel.Env }

// NewChecker returns a checker.
func NewChecker() (*Checker, error) {
	base, err := environment()
	if err != nil {
		return nil, err
	}
	return &Checker{base}, nil
}

// Check reports the errors in an expression in a scope as an [Errors].
func (c *Checker) Check(expression string, scope Scope) error {
	types := &schemas{Provider: c.base.CELTypeProvider(), fields: map[string]map[string]*cel.Type{}}
	options := []cel.EnvOption{cel.CustomTypeProvider(types)}
	vars := scope.variables(types)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		options = append(options, cel.Variable(name, vars[name]))
	}
	env, err := c.base.Extend(options...)
	if err != nil {
		return fmt.Errorf("expr: %w", err)
	}
	text, shifts := withStepNames(expression)
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return problems(text, issues, shifts)
	}
	if _, here := vars["steps"]; here {
		if err := scope.unknownSteps(text, parsed, shifts); err != nil {
			return err
		}
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return problems(text, issues, shifts)
	}
	return scope.wrongResult(checked.OutputType())
}

// wrongResult reports an expression with another type of result than is required.
func (s Scope) wrongResult(t *cel.Type) error {
	wanted, kind := "true or false", cel.BoolKind
	if s.Place == Items {
		wanted, kind = "a list", cel.ListKind
	}
	if t.Kind() == kind || t.Kind() == cel.DynKind {
		return nil
	}
	return Errors{{Fault: WrongResult, Line: 1, Column: 1, Message: fmt.Sprintf("it gives a value of type %s and must give %s", t, wanted)}}
}

// unknownSteps reports steps in an expression that do not exist.
func (s Scope) unknownSteps(text string, parsed *cel.Ast, shifts []shift) error {
	var found Errors
	tree := parsed.NativeRep()
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		id, named := stepOf(e)
		if _, declared := s.Steps[id]; !named || declared {
			return
		}
		message := fmt.Sprintf("there is no step %s here", id)
		if len(s.Steps) > 0 {
			message += "; there are " + strings.Join(slices.Sorted(maps.Keys(s.Steps)), ", ")
		}
		at := tree.SourceInfo().GetStartLocation(e.ID())
		line, column := placeIn(text, at.Line(), at.Column(), shifts)
		found = append(found, &Error{Fault: UnknownName, Line: line, Column: column, Message: message})
	}))
	if found == nil {
		return nil
	}
	return found
}

// stepOf returns the step that an expression names with steps.ID or steps["ID"].
func stepOf(e ast.Expr) (id string, ok bool) {
	isSteps := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "steps" }
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().FieldName(), isSteps(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || !isSteps(call.Args()[0]) || call.Args()[1].Kind() != ast.LiteralKind {
			return "", false
		}
		id, ok = call.Args()[1].AsLiteral().Value().(string)
	}
	return id, ok
}

// problems converts the library's errors to ours, sorted by position.
func problems(text string, issues *cel.Issues, shifts []shift) error {
	var found Errors
	for _, issue := range issues.Errors() {
		e := &Error{Fault: WrongType, Message: plain(issue.Message)}
		e.Line, e.Column = placeIn(text, issue.Location.Line(), issue.Location.Column(), shifts)
		_, name, _ := strings.Cut(issue.Message, "'")
		name, _, _ = strings.Cut(name, "'")
		switch {
		case strings.HasPrefix(issue.Message, "undeclared reference"):
			e.Fault, e.Message = undeclared(name)
		case strings.HasPrefix(issue.Message, "undefined field"):
			e.Fault, e.Message = UnknownName, fmt.Sprintf("there is no field %s", name)
		case strings.HasPrefix(issue.Message, "Syntax error"), strings.HasPrefix(issue.Message, "expression"), strings.HasPrefix(issue.Message, "invalid"):
			e.Fault = Syntax
		}
		found = append(found, e)
	}
	slices.SortStableFunc(found, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return found
}

func undeclared(name string) (Fault, string) {
	root, _, _ := strings.Cut(name, ".")
	if where, known := meaning()[root]; known {
		return OutOfScope, fmt.Sprintf("there is no %s here; it is known %s", root, where)
	}
	return UnknownName, fmt.Sprintf("there is no variable or function %s", name)
}

// placeIn converts a position in the compiled text to one in the original text: the
// line and the column, from 1, in characters.
func placeIn(text string, line, column int, shifts []shift) (int, int) {
	if line < 1 {
		return 0, 0
	}
	lines := strings.SplitAfter(text, "\n")
	before := strings.Join(lines[:min(line-1, len(lines))], "")
	inLine := ""
	if line <= len(lines) {
		runes := []rune(lines[line-1])
		inLine = string(runes[:min(max(column, 0), len(runes))])
	}
	from := original(len(before), shifts)
	to := original(len(before)+len(inLine), shifts)
	return line, max(utf8.RuneCountInString(inLine)-(len(inLine)-(to-from)), 0) + 1
}

// Steps returns the ids of the steps that an expression names, in order.
func (c *Checker) Steps(expression string) []string {
	text, _ := withStepNames(expression)
	parsed, issues := c.base.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	var ids []string
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if id, named := stepOf(e); named {
			ids = append(ids, id)
		}
	}))
	slices.Sort(ids)
	return slices.Compact(ids)
}
