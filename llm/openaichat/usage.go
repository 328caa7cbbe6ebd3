package openaichat

import (
	"cmp"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readUsage converts a usage object. The last one counts, except for empty counts,
// which relays send if they lost the count. The total shows whether a service counts
// reasoning in addition to the completion.
func (d *decoder) readUsage(v []byte) {
	if string(v) == "null" {
		return
	}
	u := d.usage
	var total, hits int64
	seen := false
	for m := wire.ScanObject(v); m.Next(); {
		n := wire.Int(m.Value())
		switch string(m.Key()) {
		case "prompt_tokens":
			u.Input, seen = cmp.Or(n, u.Input), true
		case "completion_tokens":
			u.Output, seen = cmp.Or(n, u.Output), true
		case "total_tokens":
			total = n
		case "prompt_cache_hit_tokens":
			hits = n
		case "prompt_tokens_details":
			for t := wire.ScanObject(m.Value()); t.Next(); {
				switch string(t.Key()) {
				case "cached_tokens":
					u.CacheRead = cmp.Or(wire.Int(t.Value()), u.CacheRead)
				case "cache_write_tokens":
					u.CacheWrite = cmp.Or(wire.Int(t.Value()), u.CacheWrite)
				}
			}
		case "completion_tokens_details":
			if n := wire.Member(m.Value(), "reasoning_tokens"); n != nil {
				u.Reasoning = cmp.Or(wire.Int(n), u.Reasoning)
			}
		}
	}
	if !seen {
		return
	}
	u.CacheRead = max(u.CacheRead, hits)
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	d.usage, d.reported = u, true
}
