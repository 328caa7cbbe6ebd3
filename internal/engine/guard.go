package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// guard calls code of others and turns a panic into the error that failed
// makes of it. An error that the code gives is read here as well, because its
// methods are code of others, too: a nil pointer of an error type is one whose
// message panics.
func guard[T any](call func() (T, error), failed func(message string) error) (v T, err error) {
	deed := "panicked: "
	defer func() {
		if p := recover(); p != nil {
			err = failed(fmt.Sprint(deed, p))
		}
	}()
	if v, err = call(); err != nil {
		deed = fmt.Sprintf("gave an error of type %T that panicked when it was read: ", err)
		read(err)
	}
	return v, err
}

// read does to an error what is done to errors later on.
func read(err error) {
	_ = err.Error()
	_ = errors.Is(err, context.Canceled)
}

// PanicError is a defect: a machine or the engine itself panicked. The run has
// ended with reason internal.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names what was panicked with; the stack is for who reports the defect.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

func newPanicError(p any) *PanicError { return &PanicError{Value: p, Stack: debug.Stack()} }
