package compact

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Apply returns the conversation that results from applying d to messages. It modifies
// neither the slice nor its messages, and it reuses the messages that d does not
// change. It returns an error if d does not match the conversation.
func Apply(messages []*llm.Message, d event.HistoryCompressed) ([]*llm.Message, error) {
	out, err := without(shortened(messages, d), d.Removed)
	if err != nil {
		return nil, err
	}
	if d.Summary == "" {
		return out, nil
	}
	if d.SummaryAt < 0 || d.SummaryAt > len(out) {
		return nil, fmt.Errorf("compact: a summary at %d of %d messages", d.SummaryAt, len(out))
	}
	out = append(out, nil)
	copy(out[d.SummaryAt+1:], out[d.SummaryAt:])
	out[d.SummaryAt] = summaryMessage(&d)
	return out, nil
}

func summaryMessage(d *event.HistoryCompressed) *llm.Message {
	m := llm.UserText(d.Summary)
	m.Origin = llm.OriginLoop
	if d.SummaryRole == llm.RoleSystem {
		m.Role = llm.RoleSystem
	}
	return m
}

// without returns messages without the removed ranges.
func without(messages []*llm.Message, removed []event.MessageRange) ([]*llm.Message, error) {
	if err := checkRanges(removed, len(messages)); err != nil {
		return nil, err
	}
	out := make([]*llm.Message, 0, len(messages)+1)
	at := 0
	for _, r := range removed {
		out = append(out, messages[at:r.From]...)
		at = r.To
	}
	return append(out, messages[at:]...), nil
}

// checkRanges returns an error unless the ranges lie within n messages, are in order
// and do not overlap.
func checkRanges(removed []event.MessageRange, n int) error {
	at := 0
	for _, r := range removed {
		if r.From < at || r.To <= r.From || r.To > n {
			return fmt.Errorf("compact: messages %d to %d of %d cannot leave", r.From, r.To, n)
		}
		at = r.To
	}
	return nil
}

// shortened replaces the messages whose results are cleared, repeated or clamped.
func shortened(messages []*llm.Message, d event.HistoryCompressed) []*llm.Message {
	if len(d.Cleared) == 0 && len(d.Clamped) == 0 && len(d.Repeated) == 0 {
		return messages
	}
	change := make(map[string]int, len(d.Cleared)+len(d.Clamped)+len(d.Repeated))
	for _, id := range d.Cleared {
		change[id] = cleared
	}
	for _, c := range d.Clamped {
		change[c.CallID] = c.Chars
	}
	for _, r := range d.Repeated {
		change[r.CallID] = repeated
	}
	out := append([]*llm.Message(nil), messages...)
	for i, m := range messages {
		if m.Role == llm.RoleTool {
			out[i] = shorten(m, change)
		}
	}
	return out
}

// The values in the map of shorten for results that keep none of their text.
const (
	cleared  = -1
	repeated = -2
)

// shorten returns m with the results in change shortened: change maps a call id to the
// number of characters kept at each end, or to cleared or repeated. It returns m itself
// if no result changes.
func shorten(m *llm.Message, change map[string]int) *llm.Message {
	var parts llm.Parts
	for i, p := range m.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			continue
		}
		chars, ok := change[r.CallID]
		if !ok {
			continue
		}
		if parts == nil {
			parts = append(parts, m.Parts...)
		}
		switch chars {
		case cleared:
			r.Output, r.Media, r.Pin = stub(r), nil, ""
		case repeated:
			r.Output, r.Media, r.Pin = pointer(r), nil, ""
		default:
			r.Output = clamp(r.Output, chars)
		}
		parts[i] = r
	}
	if parts == nil {
		return m
	}
	return &llm.Message{Role: m.Role, Parts: parts, Origin: m.Origin}
}

// stub returns the text that replaces a cleared result. It gives the tool's name and
// the length of the result, and tells the model that it can call the tool again.
func stub(r llm.ToolResult) string {
	return "[The result of " + r.Name + " (" + strconv.Itoa(utf8.RuneCountInString(r.Output)) +
		" characters) was cleared to save room. Call " + r.Name + " again if you need it.]"
}

// pointer returns the text that replaces a result that a later one repeats.
func pointer(r llm.ToolResult) string {
	return "[A later result of " + r.Name + " says this again; it was taken out here to save room.]"
}

// clamp keeps the first and the last chars characters of text.
func clamp(text string, chars int) string {
	n := utf8.RuneCountInString(text)
	if n <= 2*chars {
		return text
	}
	return text[:offset(text, chars)] + "\n[… " + strconv.Itoa(n-2*chars) + " characters left out to save room …]\n" +
		text[offset(text, n-chars):]
}

// offset returns the byte index of the n-th character.
func offset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
