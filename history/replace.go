package history

import (
	"slices"

	"github.com/pawlrun/pawl/llm"
)

// BreakOff takes from the last answer what the provider was still doing on its
// side: the items at its end, which nobody can finish without the provider's
// tools, and which it refuses without their results. An answer that then says
// nothing is left out.
func (h *History) BreakOff() {
	last := len(h.messages) - 1
	if last < 0 || h.messages[last].Role != llm.RoleAssistant {
		return
	}
	m := *h.messages[last]
	end := len(m.Parts)
	for end > 0 {
		if _, item := m.Parts[end-1].(llm.Item); !item {
			break
		}
		end--
	}
	m.Parts = m.Parts[:end:end]
	h.messages = slices.Clone(h.messages)
	if h.messages[last] = &m; !substantial(m.Parts) {
		h.messages = h.messages[:last]
	}
}

// Replace puts another output in the place of a call's result, which is what
// output makes of that one, and says whether there is such a result. What was
// handed out before stays as it was.
func (h *History) Replace(callID string, output func(before llm.ToolResult) string) bool {
	for i, m := range slices.Backward(h.messages) {
		for j, p := range m.Parts {
			r, ok := p.(llm.ToolResult)
			if !ok || r.CallID != callID {
				continue
			}
			changed := *m
			changed.Parts = slices.Clone(m.Parts)
			changed.Parts[j] = llm.ToolResult{CallID: r.CallID, ProviderID: r.ProviderID, Name: r.Name, Output: output(r), Tools: r.Tools, Pin: r.Pin}
			h.messages = slices.Clone(h.messages)
			h.messages[i] = &changed
			return true
		}
	}
	return false
}
