// Package expr checks and evaluates the expressions of workflow files. They are CEL
// over the finished steps and the current item or iteration of a loop. A program that
// uses them imports this package; others compile no CEL.
package expr

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
)

// CostLimit bounds the cost of one evaluation, as CEL counts it.
const CostLimit = 10_000

// maxCompiled bounds the cached compiled expressions.
const maxCompiled = 1000

// Evaluator evaluates expressions, each compiled once. It is safe for concurrent
// use.
type Evaluator struct {
	base func() (*cel.Env, error)

	mu       sync.Mutex
	compiled map[string]cel.Program
}

// New returns an evaluator. It costs nothing before its first use.
func New() *Evaluator {
	return &Evaluator{base: sync.OnceValues(environment), compiled: map[string]cel.Program{}}
}

func environment() (*cel.Env, error) {
	options := append(functionsOnStrings(), cel.EnableIdentifierEscapeSyntax(), cel.CrossTypeNumericComparisons(true))
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	return env, nil
}

// Evaluate evaluates an expression over variables, a JSON object. It is the Evaluate of
// a perform.Env. An error is an *[Error] or an [Errors].
func (e *Evaluator) Evaluate(ctx context.Context, expression string, variables json.RawMessage) (json.RawMessage, error) {
	values, err := decode(variables)
	if err != nil {
		return nil, fmt.Errorf("expr: the variables: %w", err)
	}
	program, err := e.program(expression, slices.Sorted(maps.Keys(values)))
	if err != nil {
		return nil, err
	}
	out, _, err := program.ContextEval(ctx, values)
	if err != nil {
		return nil, failed(err)
	}
	w := writer{}
	if w.value(out); w.fault != "" {
		if w.fault == TooCostly {
			return nil, errTooCostly
		}
		return nil, &Error{Fault: w.fault, Message: w.message}
	}
	return w.out, nil
}

// program compiles an expression over variables of any type.
func (e *Evaluator) program(expression string, names []string) (cel.Program, error) {
	key := expression + "\x00" + strings.Join(names, " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.compiled[key]; p != nil {
		return p, nil
	}
	base, err := e.base()
	if err != nil {
		return nil, err
	}
	declared := make([]cel.EnvOption, len(names))
	for i, name := range names {
		declared[i] = cel.Variable(name, cel.DynType)
	}
	env, err := base.Extend(declared...)
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	text, shifts := withStepNames(expression)
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, problems(text, issues, shifts)
	}
	p, err := env.Program(checked, cel.CostLimit(CostLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	if len(e.compiled) == maxCompiled {
		clear(e.compiled)
	}
	e.compiled[key] = p
	return p, nil
}

// decode decodes variables. A whole number becomes an integer, because CEL
// distinguishes it from a fraction.
func decode(variables json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(variables)) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(variables))
	d.UseNumber()
	values := map[string]any{}
	if err := d.Decode(&values); err != nil {
		return nil, err
	}
	return numbers(values).(map[string]any), nil
}

// numbers replaces JSON numbers by Go's.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for key, one := range v {
			v[key] = numbers(one)
		}
	case []any:
		for i, one := range v {
			v[i] = numbers(one)
		}
	}
	return v
}
