package expr

import (
	"context"
	"errors"
	"strings"

	"cel.dev/cel-go/interpreter"
)

// Fault is the kind of an error in an expression or its evaluation.
type Fault string

// The faults. The first five are found before anything runs, and so is WrongResult if
// the types determine it.
const (
	// Syntax is a syntax error.
	Syntax Fault = "syntax"
	// UnknownName is an unknown step, field or function.
	UnknownName Fault = "unknown_name"
	// OutOfScope is a variable that exists, but not in this scope.
	OutOfScope Fault = "out_of_scope"
	// WrongType is an operation on values that do not support it.
	WrongType Fault = "wrong_type"
	// WrongResult is a result of another type than is required, or that JSON cannot
	// represent.
	WrongResult Fault = "wrong_result"
	// MissingKey is a key or a variable that the values do not have.
	MissingKey Fault = "missing_key"
	// TooCostly is an expression that exceeds the cost limit.
	TooCostly Fault = "too_costly"
	// NeverThere is a comparison with a text that the other side can never be.
	NeverThere Fault = "never_there"
	// BadValue is a value that an operation does not accept, for example in a division
	// by zero.
	BadValue Fault = "bad_value"
)

// Error is an error in an expression or its evaluation.
type Error struct {
	Fault Fault
	// Line and Column are the position in the expression, from 1; 0 if unknown.
	Line, Column int
	Message      string
}

// Error returns the message alone, because the caller shows the expression too.
func (e *Error) Error() string { return e.Message }

// ErrorType returns the fault, for records.
func (e *Error) ErrorType() string { return string(e.Fault) }

// Errors are all errors in an expression.
type Errors []*Error

// Error returns one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Message
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each of them.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// failed converts an error of an evaluation to one of ours.
func failed(err error) error {
	if ctx := cancelled(err); ctx != nil {
		return ctx
	}
	message := err.Error()
	fault := BadValue
	switch cost, stopped := errors.AsType[interpreter.EvalCancelledError](err); {
	case stopped && (cost.Cause == interpreter.CostLimitExceeded || cost.Cause == interpreter.MemoryLimitExceeded):
		return errTooCostly
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

var errTooCostly = &Error{Fault: TooCostly, Message: "it costs more than an expression may (10,000 steps of work)"}

// plain removes what only readers of the library's source need.
func plain(message string) string {
	message = strings.ReplaceAll(message, " (in container '')", "")
	return strings.TrimPrefix(message, "ERROR: ")
}

// Offset returns the position of the error in the text of the expression, in characters
// from 0.
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
