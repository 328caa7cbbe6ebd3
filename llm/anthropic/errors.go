package anthropic

import (
	"net/http"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// classify reads the body of a failed call.
func classify(e *llm.Error, body []byte) {
	if !wire.Valid(body) {
		return
	}
	m := wire.ScanObject(body)
	for m.Next() {
		switch string(m.Key()) {
		case "error":
			describe(e, m.Value())
		case "request_id":
			if e.RequestID == "" {
				e.RequestID = wire.Text(m.Value())
			}
		}
	}
}

// newError returns the error that a started answer reports.
func newError(failure, requestID []byte) *llm.Error {
	e := wire.Failed(failure, describe)
	e.RequestID = wire.Text(requestID)
	return e
}

// describe copies type and message of an error object and refines the class.
func describe(e *llm.Error, failure []byte) {
	m := wire.ScanObject(failure)
	for m.Next() {
		switch string(m.Key()) {
		case "type":
			e.Code = wire.Text(m.Value())
		case "message":
			e.Message = wire.Text(m.Value())
		}
	}
	if class, ok := classes[e.Code]; ok {
		e.Class = class
	}
	if e.Code == "timeout_error" && e.Status == 0 {
		e.Status = http.StatusGatewayTimeout
	}
	for _, w := range wordings {
		if strings.Contains(e.Message, w.part) && (e.Class == llm.ClassInvalid || e.Class == llm.ClassThrottled) {
			e.Class = w.class
		}
	}
}

// classes maps the error types of the API to classes.
var classes = map[string]llm.Class{
	"invalid_request_error": llm.ClassInvalid,
	"not_found_error":       llm.ClassInvalid,
	"authentication_error":  llm.ClassAuth,
	"permission_error":      llm.ClassAuth,
	"billing_error":         llm.ClassQuota,
	"request_too_large":     llm.ClassContextOverflow,
	"rate_limit_error":      llm.ClassThrottled,
	"timeout_error":         llm.ClassOverloaded,
	"api_error":             llm.ClassOverloaded,
	"overloaded_error":      llm.ClassOverloaded,
}

// wordings distinguish errors that the API reports as invalid_request_error or
// rate_limit_error but that need another reaction of the loop.
var wordings = []struct {
	part  string
	class llm.Class
}{
	{"prompt is too long", llm.ClassContextOverflow},
	{"exceed context limit", llm.ClassContextOverflow},
	{"credit balance is too low", llm.ClassQuota},
	{"API usage limits", llm.ClassQuota},
	{"spend limit", llm.ClassQuota},
}
