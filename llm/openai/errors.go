package openai

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// classify reads the body of a failed call.
func classify(e *llm.Error, body []byte) {
	if !wire.Valid(body) {
		return
	}
	if failure := wire.Member(body, "error"); len(failure) > 0 && failure[0] == '{' {
		body = failure
	}
	describe(e, body)
}

// describe fills in an error from the service's error, which is an object with a code,
// a type and a message, or a sentence.
func describe(e *llm.Error, failure []byte) {
	var code, kind, message string
	for m := wire.ScanObject(failure); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "code":
			code = wire.Text(v)
			if status := int(wire.Int(v)); e.Status == 0 && status >= 400 && status < 600 {
				e.Status = status
			}
		case "type":
			kind = wire.Text(v)
		case "message", "error", "detail":
			if text := wire.Text(v); text != "" {
				message = text
			}
		}
	}
	e.Code, e.Message = code, message
	if code == "" {
		e.Code = kind
	}
	if e.Message == "" {
		e.Message = strings.ToValidUTF8(string(failure), "")
	}
	e.Class = class(e, code, kind)
	if e.Class == llm.ClassThrottled && !e.HasRetryAfter {
		e.RetryAfter, e.HasRetryAfter = retryAfterIn(e.Message)
	}
}

// class returns the class of a failure, from the code, the type, the message or the
// status, in this order.
func class(e *llm.Error, code, kind string) llm.Class {
	if c := classOfCode(code); c != "" {
		return c
	}
	c := classOfCode(kind)
	if c != "" && c != llm.ClassInvalid {
		return c
	}
	switch {
	case e.Status != 0:
		c = llm.ClassOfStatus(e.Status)
	case c == "":
		c = llm.ClassOverloaded // the service answered, so the connection works
	}
	if c == llm.ClassInvalid {
		return classOfWords(strings.ToLower(e.Message))
	}
	return c
}

func classOfCode(code string) llm.Class {
	switch code {
	case "rate_limit_exceeded", "rate_limit_error", "too_many_requests":
		return llm.ClassThrottled
	case "billing_hard_limit_reached", "billing_not_active", "usage_limit_reached", "usage_not_included":
		return llm.ClassQuota
	case "context_length_exceeded":
		return llm.ClassContextOverflow
	case "invalid_api_key", "authentication_error", "account_deactivated", "invalid_organization", "permission_error":
		return llm.ClassAuth
	case "server_error", "internal_error", "internal_server_error", "service_unavailable", "server_overloaded", "overloaded", "overloaded_error", "slow_down":
		return llm.ClassOverloaded
	case "content_policy_violation", "content_filter", "moderation_blocked", "invalid_prompt", "cyber_policy_violation":
		return llm.ClassRefused
	case "model_not_found", "unsupported_parameter", "unsupported_value", "invalid_value", "invalid_request_error":
		return llm.ClassInvalid
	}
	return ""
}

// classOfWords classifies the messages of services that send no code.
func classOfWords(message string) llm.Class {
	for _, w := range []struct {
		phrase string
		class  llm.Class
	}{
		{"maximum context length", llm.ClassContextOverflow},
		{"maximum prompt length", llm.ClassContextOverflow},
		{"context window", llm.ClassContextOverflow},
		{"incorrect api key", llm.ClassAuth},
		{"invalid api key", llm.ClassAuth},
	} {
		if strings.Contains(message, w.phrase) {
			return w.class
		}
	}
	return llm.ClassInvalid
}

// retryAfterIn parses the wait in "Please try again in 1.5s", because failures within
// a stream have no Retry-After header.
func retryAfterIn(message string) (time.Duration, bool) {
	_, rest, found := strings.Cut(message, "try again in ")
	if !found {
		return 0, false
	}
	word, _, _ := strings.Cut(rest, " ")
	if d, err := time.ParseDuration(strings.TrimRight(word, ".,;")); err == nil && d >= 0 {
		return wire.Bounded(d), true // several units, for example "1m30s"
	}
	n := 0
	for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
		n++
	}
	amount, err := strconv.ParseFloat(strings.TrimSuffix(rest[:n], "."), 64)
	if err != nil {
		return 0, false
	}
	unit := time.Second
	switch rest = strings.TrimSpace(rest[n:]); {
	case strings.HasPrefix(rest, "ms"):
		unit = time.Millisecond
	case strings.HasPrefix(rest, "m"):
		unit = time.Minute
	case strings.HasPrefix(rest, "h"):
		unit = time.Hour
	case !strings.HasPrefix(rest, "s"):
		return 0, false
	}
	return wire.Wait(amount, unit), true
}
