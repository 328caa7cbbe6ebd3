package openai

import (
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readUsage reads token counts. The service counts as we do: cached tokens are
// in the input and reasoning is in the output.
func (r *result) readUsage(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "input_tokens":
			r.usage.Input, r.hasUsage = wire.Int(v), true
		case "output_tokens":
			r.usage.Output = wire.Int(v)
		case "input_tokens_details", "output_tokens_details":
			r.readDetails(v)
		}
	}
}

func (r *result) readDetails(raw []byte) {
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "cached_tokens":
			r.usage.CacheRead = wire.Int(v)
		case "cache_write_tokens":
			r.usage.CacheWrite = wire.Int(v)
		case "reasoning_tokens":
			r.usage.Reasoning = wire.Int(v)
		}
	}
}
