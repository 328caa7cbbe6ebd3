package compact

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// resultChars is the number of characters at each end of a tool result that a
// transcript contains.
const resultChars = 2000

// endGivesUp is the number of characters that each end of a cut group loses to the line
// between the ends.
const endGivesUp = 50

// transcript renders as many whole groups of messages as fit in that many tokens, and
// returns the index after them. It cuts the middle of the first group if that group
// alone is too long.
func transcript(messages []*llm.Message, tokens int) (text string, until int) {
	var b strings.Builder
	for until < len(messages) {
		to := end(messages, until)
		var group strings.Builder
		for _, m := range messages[until:to] {
			render(&group, m)
		}
		size := Tokens(group.String())
		if size > tokens && until > 0 {
			break
		}
		if size > tokens {
			// A token has about four characters, and each end gets half of them.
			b.WriteString(clamp(group.String(), 2*tokens-endGivesUp))
			return b.String(), to
		}
		b.WriteString(group.String())
		tokens -= size
		until = to
	}
	return b.String(), until
}

func render(b *strings.Builder, m *llm.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			line(b, speaker(m.Role), p.Text)
		case llm.Media:
			line(b, "USER: ", "[a file: "+p.MediaType+" "+p.Name+"]")
		case llm.ToolCall:
			line(b, "ASSISTANT: ", "[calls "+p.Name+" with "+clamp(string(p.Args)+p.ArgsText, resultChars)+"]")
		case llm.ToolResult:
			label := "TOOL_RESULT"
			if p.IsError {
				label += " (error)"
			}
			line(b, label+": ", clamp(p.Output, resultChars))
		case llm.Item:
			line(b, "ASSISTANT: ", "["+p.Type+"]")
		}
	}
}

func speaker(r llm.Role) string {
	switch r {
	case llm.RoleAssistant:
		return "ASSISTANT: "
	case llm.RoleSystem:
		return "SYSTEM: "
	}
	return "USER: "
}

func line(b *strings.Builder, label, text string) {
	if text = strings.TrimSpace(text); text != "" {
		b.WriteString(label)
		b.WriteString(text)
		b.WriteByte('\n')
	}
}
