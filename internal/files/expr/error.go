package expr

import (
	"context"
	"errors"
	"strings"

	"cel.dev/cel-go/interpreter"
)

// Fault is what is wrong with an expression, or with what it met.
type Fault string

// The faults. The first five are found before anything runs, and so is
// WrongResult where the types tell it.
const (
	// Syntax is no expression of the language.
	Syntax Fault = "syntax"
	// UnknownName is a step, a field or a function that there is not.
	UnknownName Fault = "unknown_name"
	// OutOfScope is a variable that there is, but not here.
	OutOfScope Fault = "out_of_scope"
	// WrongType is an operation on values that do not have it.
	WrongType Fault = "wrong_type"
	// WrongResult is a value of another kind than is wanted, or that JSON lacks.
	WrongResult Fault = "wrong_result"
	// MissingKey is a key or a variable that the values do not have.
	MissingKey Fault = "missing_key"
	// TooCostly is more work than an expression may take.
	TooCostly Fault = "too_costly"
	// NeverThere is a comparison with a text that the other side can never be.
	NeverThere Fault = "never_there"
	// BadValue is a value that an operation does not take, as a division by zero.
	BadValue Fault = "bad_value"
)

// Error is why an expression is refused or gave nothing.
type Error struct {
	Fault Fault
	// Line and Column are where in the expression, from 1; 0 where that is not known.
	Line, Column int
	Message      string
}

// Error gives the message alone: the caller shows the expression, too.
func (e *Error) Error() string { return e.Message }

// ErrorType gives the fault, for records.
func (e *Error) ErrorType() string { return string(e.Fault) }

// Errors are all that is wrong with an expression.
type Errors []*Error

// Error gives one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Message
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each of them.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// failed turns an error of an evaluation into one of ours.
func failed(expression string, err error) error {
	if ctx := cancelled(err); ctx != nil {
		return ctx
	}
	message := err.Error()
	fault := BadValue
	switch cost, stopped := errors.AsType[interpreter.EvalCancelledError](err); {
	case stopped && (cost.Cause == interpreter.CostLimitExceeded || cost.Cause == interpreter.MemoryLimitExceeded):
		return tooCostly(expression)
	case strings.HasPrefix(message, "no such key"), strings.HasPrefix(message, "no such attribute"):
		fault = MissingKey
	case strings.HasPrefix(message, "no such overload"), strings.HasPrefix(message, "unsupported"):
		fault = WrongType
	}
	return &Error{Fault: fault, Message: plain(message)}
}

func cancelled(err error) error {
	stopped, ok := errors.AsType[interpreter.EvalCancelledError](err)
	if ok && stopped.Cause == interpreter.ContextCancelled {
		return context.Canceled
	}
	return nil
}

func tooCostly(expression string) error {
	return &Error{Fault: TooCostly, Message: "it costs more than an expression may (10,000 steps of work)"}
}

// plain drops what only readers of the library's source need.
func plain(message string) string {
	message = strings.ReplaceAll(message, " (in container '')", "")
	return strings.TrimPrefix(message, "ERROR: ")
}

// Offset is where in the text of the expression the error is, in characters from 0.
func (e *Error) Offset(text string) int {
	before := 0
	for i, line := range strings.SplitAfter(text, "\n") {
		if i == e.Line-1 {
			return before + max(e.Column-1, 0)
		}
		before += len([]rune(line))
	}
	return 0
}
