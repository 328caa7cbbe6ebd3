package history

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// Replace replaces the output of a call's result by what output returns for it, and
// reports whether the result exists. It clears the result's error flag and media.
// Slices that Messages returned before do not change.
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
