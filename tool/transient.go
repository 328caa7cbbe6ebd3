package tool

import "time"

// TransientError is a failure that may succeed in another attempt, such as a busy
// server; the call itself is correct. The loop makes another attempt if the tool is
// declared pure, idempotent or read-only and no person had to approve the call.
// Otherwise the model receives it like any failure.
type TransientError struct {
	Err error
	// RetryAfter is how long the other side asks to wait; nil leaves it to the loop. If
	// it is more than a minute, the model receives the failure instead.
	RetryAfter *time.Duration
}

// Transient marks an error as a [TransientError]; nil stays nil.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &TransientError{Err: err}
}

// TransientAfter is [Transient] for an error with a time to wait.
func TransientAfter(err error, wait time.Duration) error {
	if err == nil {
		return nil
	}
	return &TransientError{Err: err, RetryAfter: &wait}
}

// Error returns the message of the cause, which the model sees.
func (e *TransientError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransientError) Unwrap() error { return e.Err }
