package gemini

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// classify reads an error body. Streams may wrap it in an array.
func classify(e *llm.Error, body []byte) {
	if list := wire.ScanArray(body); list.Next() {
		body = list.Value()
	}
	reason := ""
	for m := wire.ScanObject(body); m.Next(); {
		if string(m.Key()) != "error" {
			continue
		}
		for f := wire.ScanObject(m.Value()); f.Next(); {
			switch string(f.Key()) {
			case "message":
				e.Message = wire.Text(f.Value())
			case "status":
				e.Code = wire.Text(f.Value())
			case "code":
				if status := int(wire.Int(f.Value())); e.Status == 0 && status >= 400 && status < 600 {
					e.Status, e.Class = status, llm.ClassOfStatus(status)
				}
			case "details":
				reason = readDetails(e, f.Value())
			}
		}
	}
	message := strings.ToLower(e.Message)
	switch {
	case reason == "API_KEY_INVALID", e.Code == "UNAUTHENTICATED", e.Code == "PERMISSION_DENIED":
		e.Class = llm.ClassAuth
	case reason == "PerDay":
		e.Class = llm.ClassQuota
	case e.Code == "RESOURCE_EXHAUSTED":
		e.Class = llm.ClassThrottled
	case strings.Contains(message, "exceeds the maximum number of tokens"), strings.Contains(message, "input token count"):
		e.Class = llm.ClassContextOverflow
	case e.Code == "UNAVAILABLE", e.Code == "INTERNAL", e.Code == "DEADLINE_EXCEEDED":
		e.Class = llm.ClassOverloaded
	}
}

// readDetails reads the wait that the service asks for and the reason of the refusal:
// an exhausted daily quota does not recover in a minute.
func readDetails(e *llm.Error, v []byte) (reason string) {
	for list := wire.ScanArray(v); list.Next(); {
		for m := wire.ScanObject(list.Value()); m.Next(); {
			switch string(m.Key()) {
			case "reason":
				reason = wire.Text(m.Value())
			case "retryDelay":
				if d, err := time.ParseDuration(wire.Text(m.Value())); err == nil && d >= 0 && !e.HasRetryAfter {
					e.RetryAfter, e.HasRetryAfter = wire.Bounded(d), true
				}
			case "violations":
				if strings.Contains(string(m.Value()), "PerDay") {
					reason = "PerDay"
				}
			}
		}
	}
	return reason
}
