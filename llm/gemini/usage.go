package gemini

import (
	"cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// readUsage converts the service's counts: prompt tokens include cached ones; thoughts
// and tool-use prompts are counted separately. The last report counts, except zero
// counts, which relays send if they lost the count.
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
	was := d.usage
	switch {
	case !seen && !d.reported:
		return
	case u.Input == 0 && was.Input > 0:
		u.Input, u.CacheRead = was.Input, was.CacheRead
	default:
		u.Input += hosted
	}
	u.Reasoning = cmp.Or(u.Reasoning, was.Reasoning)
	u.Output = cmp.Or(candidates, was.Output-was.Reasoning) + u.Reasoning
	d.usage, d.reported = u, true
}
