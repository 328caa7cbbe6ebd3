package history

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// BreakOff removes from the last answer what the provider has not finished on
// its side: it cannot be finished without the provider's tools, and the provider
// refuses it without their results. In a paused answer that is the items at its
// end, and an answer that is then empty is removed. In an answer with calls of
// ours it is what [HalfDone] finds.
func (h *History) BreakOff() {
	last := len(h.messages) - 1
	for last >= 0 && h.messages[last].Role == llm.RoleTool {
		last--
	}
	if last < 0 || h.messages[last].Role != llm.RoleAssistant {
		return
	}
	m := *h.messages[last]
	if last == len(h.messages)-1 {
		m.Parts = withoutLastItems(m.Parts)
	} else {
		open := HalfDone(m.Parts)
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
			item, ok := p.(llm.Item)
			return ok && open[idsOf(item).ID]
		})
	}
	h.messages, h.linted = slices.Clone(h.messages), min(h.linted, last)
	if h.messages[last] = &m; !substantial(m.Parts) {
		h.messages = h.messages[:last]
	}
}

func withoutLastItems(parts llm.Parts) llm.Parts {
	end := len(parts)
	for end > 0 {
		if _, item := parts[end-1].(llm.Item); !item {
			break
		}
		end--
	}
	return parts[:end:end]
}

// HalfDone returns the ids of the calls that a provider began on its side in an
// answer without their results: the provider would continue them once it has the
// results of our calls in the same answer. Only Anthropic's wire has such calls,
// in items whose types end in tool_use.
func HalfDone(parts llm.Parts) map[string]bool {
	var open map[string]bool
	for _, p := range parts {
		item, ok := p.(llm.Item)
		if !ok {
			continue
		}
		switch ids := idsOf(item); {
		case ids.Of != "":
			delete(open, ids.Of)
		case strings.HasSuffix(item.Type, "tool_use"):
			if open == nil {
				open = map[string]bool{}
			}
			open[ids.ID] = true
		}
	}
	return open
}

// ids are an item's own id, and that of the call that it is the result of.
type ids struct {
	ID string `json:"id"`
	Of string `json:"tool_use_id"`
}

func idsOf(item llm.Item) (of ids) {
	_ = json.Unmarshal(item.Raw, &of) // an item without ids has none
	return of
}
