package openai

import (
	"cmp"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

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
