package llm

import (
	"errors"
	"fmt"
	"time"
)

// Class is what an error of a model call means for the loop: wait, try another
// model, or stop.
type Class string

// The classes. A class says what to do next, not which status code came.
const (
	// ClassThrottled: too many requests; wait.
	ClassThrottled Class = "throttled"
	// ClassQuota: the account's credit or quota is used up; stop.
	ClassQuota Class = "quota"
	// ClassOverloaded: the service is short of capacity or failed inside.
	ClassOverloaded Class = "overloaded"
	// ClassContextOverflow: the request does not fit the model's window.
	ClassContextOverflow Class = "context_overflow"
	// ClassInvalid: the request is wrong; the same bytes will fail again.
	ClassInvalid Class = "invalid"
	// ClassAuth: the key is missing, wrong, or not allowed this model.
	ClassAuth Class = "auth"
	// ClassRefused: the provider declined on policy grounds.
	ClassRefused Class = "refused"
	// ClassNetwork: the connection failed, stalled, or ended too early.
	ClassNetwork Class = "network"
	// ClassInterrupted: the call was in flight when its process stopped or its run
	// was stopped; its outcome is unknown.
	ClassInterrupted Class = "interrupted"
)

// Error is a failed model call.
type Error struct {
	Class    Class
	Provider string
	// Status is the HTTP status, or the one that an error within an answer names; 0 if
	// there was neither.
	Status int
	// Code is the provider's own code for the error.
	Code string
	// Message is the provider's whole message.
	Message   string
	RequestID string
	// RetryAfter is how long the provider asked to wait; HasRetryAfter
	// tells "at once" from "did not say".
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Unsent says that nothing of the call was sent to the provider, so that it
	// cannot have charged for it: no connection, no proxy that would connect, or a
	// certificate that was not trusted. It is false if that is not known.
	Unsent bool
	// Room is what the provider says of the room for the request.
	Room Room
	// Adapted says that the adapter has learnt from the error: the same request is sent
	// in another form the next time.
	Adapted bool
	Err     error
}

// Room is what a provider says of how large a request may be, in tokens, each 0 where it
// does not.
type Room struct {
	// Window is what the input and the cap on the answer may take together.
	Window int64 `json:"window,omitempty"`
	// Input is what the provider counted of the input, Requested of that and the cap.
	Input     int64 `json:"input,omitempty"`
	Requested int64 `json:"requested,omitempty"`
	// Output is the largest cap that it takes.
	Output int64 `json:"output,omitempty"`
}

// Error names the provider, the status, its message and the request id.
func (e *Error) Error() string {
	s := e.Provider
	if s == "" {
		s = "model"
	}
	s += ": " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.RequestID != "" {
		s += " [request " + e.RequestID + "]"
	}
	return s
}

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.Err }

// ErrUnknownModel is wrapped by resolvers that do not have a model.
var ErrUnknownModel = errors.New("llm: unknown model")

// AsError returns err as an *Error. An error of another type is classified as a
// network failure, because the adapter received no answer that it could
// classify.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: ClassNetwork, Message: err.Error(), Err: err}
}

// ClassOfStatus is the class of an HTTP status when nothing else is known of
// the error; 0 (no answer) is a network failure.
func ClassOfStatus(status int) Class {
	switch {
	case status == 0 || status == 408:
		return ClassNetwork
	case status == 401 || status == 403:
		return ClassAuth
	case status == 402:
		return ClassQuota
	case status == 413:
		return ClassContextOverflow
	case status == 429:
		return ClassThrottled
	case status >= 500:
		return ClassOverloaded
	}
	return ClassInvalid
}
