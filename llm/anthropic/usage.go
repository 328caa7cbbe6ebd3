package anthropic

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// usage is the service's own count. Its input excludes cached tokens.
type usage struct {
	input, cacheRead, cacheWrite, longWrite, output, reasoning int64
	known                                                      bool
}

// merge takes over every figure that an object names. A later report restates
// an earlier one and never adds to it.
func (u *usage) merge(object []byte) {
	if len(object) == 0 {
		return
	}
	m := wire.ScanObject(object)
	for m.Next() {
		v := m.Value()
		if string(v) == "null" {
			continue
		}
		switch string(m.Key()) {
		case "input_tokens":
			u.input, u.known = wire.Int(v), true
		case "cache_read_input_tokens":
			u.cacheRead = wire.Int(v)
		case "cache_creation_input_tokens":
			u.cacheWrite = wire.Int(v)
		case "cache_creation":
			u.mergeWrites(v)
		case "output_tokens":
			u.output = wire.Int(v)
		case "output_tokens_details":
			u.mergeDetails(v)
		}
	}
}

// mergeWrites tells what was written to be kept for longer. The parts are in
// the sum beside them.
func (u *usage) mergeWrites(object []byte) {
	m := wire.ScanObject(object)
	for m.Next() {
		if string(m.Key()) == "ephemeral_1h_input_tokens" {
			u.longWrite = wire.Int(m.Value())
		}
	}
}

func (u *usage) mergeDetails(object []byte) {
	m := wire.ScanObject(object)
	for m.Next() {
		if string(m.Key()) == "thinking_tokens" {
			u.reasoning = wire.Int(m.Value())
		}
	}
}

// neutral counts cached tokens in.
func (u *usage) neutral() llm.Usage {
	return llm.Usage{
		Input: u.input + u.cacheRead + u.cacheWrite, Output: u.output,
		CacheRead: u.cacheRead, CacheWrite: u.cacheWrite, Reasoning: u.reasoning,
		CacheWriteLong: min(u.longWrite, u.cacheWrite),
	}
}
