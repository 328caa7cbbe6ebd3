package compact

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// resultChars is what a summary gets to see of each end of one tool result.
const resultChars = 2000

// endGivesUp is how many characters each of two ends gives up for the line that
// stands between them.
const endGivesUp = 50

// transcript renders messages from the first on for a summary to be made of, as many
// whole groups as fit in so many tokens, and says where it stopped. A first group that
// is too long by itself is cut in its middle.
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
			// Four characters are about a token, and each of two ends gets half.
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
