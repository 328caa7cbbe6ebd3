package openai

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// result is a response object, which describes an answer as a whole. The terminal event
// of a stream contains one, and an answer that is not streamed is one.
type result struct {
	id       string
	model    string
	status   string
	reason   string
	failure  []byte
	usage    llm.Usage
	hasUsage bool
	output   []byte
}

func (r *result) read(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	m := wire.ScanObject(raw)
	for m.Next() {
		switch v := m.Value(); string(m.Key()) {
		case "id":
			r.id = wire.Text(v)
		case "model":
			r.model = wire.Text(v)
		case "status":
			r.status = wire.Text(v)
		case "incomplete_details":
			r.reason = wire.Text(wire.Member(v, "reason"))
		case "error":
			if string(v) != "null" {
				r.failure = v
			}
		case "usage":
			r.readUsage(v)
		case "output":
			r.output = v
		}
	}
	return m.Err()
}

// finish returns why the model stopped, and the service's value for it. A failed
// response has none.
func (r *result) finish(parts llm.Parts, refused, cut bool) (llm.Finish, string, bool) {
	switch r.status {
	case "completed":
		return r.finishCompleted(parts, refused, cut), r.status, true
	case "incomplete":
		if r.reason == "" {
			return llm.FinishLength, r.status, true
		}
		raw := r.status + "/" + r.reason
		if r.reason == "content_filter" {
			return llm.FinishRefusal, raw, true
		}
		return llm.FinishLength, raw, true
	case "queued", "in_progress":
		return llm.FinishPause, r.status, true
	}
	return llm.FinishFailed, r.status, false
}

// finishCompleted returns the finish reason of a completed response from its parts: its
// calls run, unless one of them is incomplete.
func (r *result) finishCompleted(parts llm.Parts, refused, cut bool) llm.Finish {
	switch {
	case cut:
		return llm.FinishLength
	case len(parts.ToolCalls()) > 0:
		return llm.FinishTool
	case refused:
		return llm.FinishRefusal
	}
	return llm.FinishEnd
}
