package llm

import (
	"errors"
	"fmt"
	"time"
)

// Class says how the loop reacts to an error of a model call: wait, try another model,
// or stop.
type Class string

// The classes. A class describes the reaction, not the status code.
const (
	// ClassThrottled: too many requests; wait.
	ClassThrottled Class = "throttled"
	// ClassQuota: the account's credit or quota is used up; stop.
	ClassQuota Class = "quota"
	// ClassBudget: a budget above the run, such as that of a tenant, has no room for the
	// call; stop.
	ClassBudget Class = "budget"
	// ClassOverloaded: the service lacks capacity or failed internally.
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
	// ClassInterrupted: the call was in flight when its process or its run stopped; its
	// outcome is unknown.
	ClassInterrupted Class = "interrupted"
)

// Error is a failed model call.
type Error struct {
	Class    Class
	Provider string
	// Status is the HTTP status, or the status that an error within an answer contains;
	// 0 if there is neither.
	Status int
	// Code is the provider's own code for the error.
	Code string
	// Message is the provider's complete message.
	Message   string
	RequestID string
	// RetryAfter is how long the provider asked to wait. HasRetryAfter distinguishes a
	// wait of zero from none.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Unsent reports that nothing was sent to the provider, so that it cannot charge
	// for the call: no connection, a proxy that would not connect, or an untrusted
	// certificate. It is false if that is unknown.
	Unsent bool
	// Room is the provider's information about the size of the request.
	Room Room
	// Adapted reports that the adapter has adapted to the error: it will send the same
	// request in another form.
	Adapted bool
	Err     error
}

// Room is a provider's information about how large a request may be, in tokens; unknown
// values are 0.
type Room struct {
	// Window is the maximum of input and output cap together.
	Window int64 `json:"window,omitempty"`
	// Input is the provider's count of the input, Requested that of input and cap.
	Input     int64 `json:"input,omitempty"`
	Requested int64 `json:"requested,omitempty"`
	// Output is the largest cap that the provider accepts.
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

// AsError returns err as an *Error. It classifies an error of another type as a network
// failure, because the adapter received no answer that it could classify.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: ClassNetwork, Message: err.Error(), Err: err}
}

// ClassOfStatus returns the class of an HTTP status if nothing else is known about the
// error; 0 (no answer) is a network failure.
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
