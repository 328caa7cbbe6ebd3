package history

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// BreakOff removes unfinished provider-side calls from the last answer, because they
// cannot finish without the provider's tools, and the provider rejects them without
// results. From a paused answer it removes the items at the end, and then the answer
// itself if nothing remains. From an answer with calls of our own it removes the calls
// that [HalfDone] returns.
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

// HalfDone returns the ids of provider-side calls in an answer that have no results
// yet. The provider continues them when it receives the results of our calls in the
// same answer. Only Anthropic's wire has such calls, in items whose types end in
// tool_use.
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

// ids contains an item's own id and the id of the call whose result it is.
type ids struct {
	ID string `json:"id"`
	Of string `json:"tool_use_id"`
}

func idsOf(item llm.Item) (of ids) {
	_ = json.Unmarshal(item.Raw, &of) // an item need not have ids
	return of
}
