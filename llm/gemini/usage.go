package gemini

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readUsage reduces the counts to ours: prompt tokens hold the cached ones,
// thoughts and tool-use prompts are counted beside. The last report wins,
// unless it counts no input, as that of a relay which has lost count.
func (d *decoder) readUsage(v []byte) {
	var u llm.Usage
	var candidates, hosted int64
	seen := false
	for m := wire.ScanObject(v); m.Next(); {
		n := wire.Int(m.Value())
		switch string(m.Key()) {
		case "promptTokenCount":
			u.Input, seen = n, true
		case "candidatesTokenCount":
			candidates = n
		case "thoughtsTokenCount":
			u.Reasoning = n
		case "cachedContentTokenCount":
			u.CacheRead = n
		case "toolUsePromptTokenCount":
			hosted = n
		}
	}
	if seen && (u.Input > 0 || d.usage.Input == 0) {
		u.Input += hosted
		u.Output = candidates + u.Reasoning
		d.usage, d.reported = u, true
	}
}
