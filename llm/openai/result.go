package openai

import (
	"cmp"

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

// readUsage reads token counts. The service's convention is ours: the input includes
// cached tokens and the output includes reasoning. The last report counts, except zero
// counts, which relays send if they lost the count.
func (r *result) readUsage(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "input_tokens":
			r.usage.Input, r.hasUsage = cmp.Or(wire.Int(v), r.usage.Input), true
		case "output_tokens":
			r.usage.Output = cmp.Or(wire.Int(v), r.usage.Output)
		case "input_tokens_details", "output_tokens_details":
			r.readDetails(v)
		}
	}
}

func (r *result) readDetails(raw []byte) {
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "cached_tokens":
			r.usage.CacheRead = cmp.Or(wire.Int(v), r.usage.CacheRead)
		case "cache_write_tokens":
			r.usage.CacheWrite = cmp.Or(wire.Int(v), r.usage.CacheWrite)
		case "reasoning_tokens":
			r.usage.Reasoning = cmp.Or(wire.Int(v), r.usage.Reasoning)
		}
	}
}
