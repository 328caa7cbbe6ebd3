package anthropic

import (
	"cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// usage is the service's count. Its input excludes cached tokens.
type usage struct {
	input, cacheRead, cacheWrite, longWrite, output, reasoning int64
	// reported reports that the input count has arrived; every report has it.
	reported bool
}

// merge copies every count that an object contains. A later report replaces an earlier
// one and is never added to it. Zero counts are ignored: some relays report only the
// output at the end.
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
			u.input, u.reported = cmp.Or(wire.Int(v), u.input), true
		case "cache_read_input_tokens":
			u.cacheRead = cmp.Or(wire.Int(v), u.cacheRead)
		case "cache_creation_input_tokens":
			u.cacheWrite = cmp.Or(wire.Int(v), u.cacheWrite)
		case "cache_creation":
			// Tokens with the longer lifetime are also part of the sum.
			if n := wire.Member(v, "ephemeral_1h_input_tokens"); n != nil {
				u.longWrite = cmp.Or(wire.Int(n), u.longWrite)
			}
		case "output_tokens":
			u.output = cmp.Or(wire.Int(v), u.output)
		case "output_tokens_details":
			if n := wire.Member(v, "thinking_tokens"); n != nil {
				u.reasoning = cmp.Or(wire.Int(n), u.reasoning)
			}
		}
	}
}

// neutral returns the usage with cached tokens included in the input.
func (u *usage) neutral() llm.Usage {
	return llm.Usage{
		Input: u.input + u.cacheRead + u.cacheWrite, Output: u.output,
		CacheRead: u.cacheRead, CacheWrite: u.cacheWrite, Reasoning: u.reasoning,
		CacheWriteLong: min(u.longWrite, u.cacheWrite),
	}
}
