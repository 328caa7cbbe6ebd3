package openaichat

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// classify reads an error body in any of the forms that services use: an object, a
// plain string, or a message at the top level.
func classify(e *llm.Error, body []byte) {
	kind, status, outer := "", int64(0), int64(0)
	for m := wire.ScanObject(bytes.TrimSpace(body)); m.Next(); {
		switch string(m.Key()) {
		case "error":
			if s := wire.Text(m.Value()); s != "" {
				e.Message = s
				continue
			}
			for f := wire.ScanObject(m.Value()); f.Next(); {
				switch string(f.Key()) {
				case "message":
					e.Message = wire.Text(f.Value())
				case "type":
					kind = wire.Text(f.Value())
				case "code":
					e.Code = wire.Text(f.Value())
					status = wire.Int(f.Value())
				}
			}
		case "message", "detail":
			if s := wire.Text(m.Value()); s != "" && e.Message == "" {
				e.Message = s
			}
		case "code":
			if s := wire.Text(m.Value()); s != "" && e.Code == "" {
				e.Code = s
			}
			outer = wire.Int(m.Value())
		}
	}
	if e.Code == "" {
		e.Code = kind
	}
	status = cmp.Or(status, outer)
	switch {
	case e.Status != 0:
	case status >= 400 && status < 600:
		e.Status, e.Class = int(status), llm.ClassOfStatus(int(status))
	case kind == "invalid_request_error":
		e.Class = llm.ClassInvalid
	case kind == "authentication_error" || kind == "permission_error":
		e.Class = llm.ClassAuth
	}
	if class, ok := classOf(e.Code, kind, strings.ToLower(e.Message)); ok {
		e.Class = class
	}
}

// classOf classifies by the texts that services use, because a status alone is too
// coarse.
func classOf(code, kind, message string) (llm.Class, bool) {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(message, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("insufficient balance", "credit balance", "exceeded your current quota"):
		return llm.ClassQuota, true
	case code == "context_length_exceeded" || has("maximum context length", "context length exceeded", "exceeds the available context", "prompt is too long"):
		return llm.ClassContextOverflow, true
	case code == "invalid_api_key" || has("incorrect api key", "invalid api key"):
		return llm.ClassAuth, true
	case code == "content_policy_violation" || code == "content_filter":
		return llm.ClassRefused, true
	case code == "rate_limit_exceeded" || code == "RateLimitReached" || kind == "rate_limit_error":
		return llm.ClassThrottled, true
	case code == "overloaded_error" || kind == "overloaded_error":
		return llm.ClassOverloaded, true
	case code == "model_not_found" || code == "tool_use_failed":
		return llm.ClassInvalid, true
	}
	return "", false
}
