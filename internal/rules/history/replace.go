package history

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// Replace puts another output in the place of a call's result, which is what
// output makes of that one, and reports whether there is such a result. The other
// output is no error and has no media. What was handed out before stays as it
// was.
func (h *History) Replace(callID string, output func(before llm.ToolResult) string) bool {
	for i, m := range slices.Backward(h.messages) {
		for j, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if !ok || r.CallID != callID {
				continue
			}
			changed := *m
			changed.Parts = slices.Clone(m.Parts)
			r.Output, r.IsError, r.Media = output(r), false, nil
			changed.Parts[j] = r
			h.messages = slices.Clone(h.messages)
			h.messages[i] = &changed
			return true
		}
	}
	return false
}
