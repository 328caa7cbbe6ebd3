package scripted

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// differs returns how a request differs from the expectation, or "".
func (x *Expectation) differs(req *llm.Request) string {
	if x == nil {
		return ""
	}
	whole := requestText(req)
	for _, want := range x.Contains {
		if !strings.Contains(whole, want) {
			return fmt.Sprintf("it does not contain %q", want)
		}
	}
	for _, not := range x.Excludes {
		if strings.Contains(whole, not) {
			return fmt.Sprintf("it contains %q", not)
		}
	}
	for _, want := range x.System {
		if !strings.Contains(req.System, want) {
			return fmt.Sprintf("its system text does not contain %q", want)
		}
	}
	last := ""
	if n := len(req.Messages); n > 0 {
		last = messageText(req.Messages[n-1])
	}
	for _, want := range x.Last {
		if !strings.Contains(last, want) {
			return fmt.Sprintf("its last message does not contain %q; it is %q", want, clip(last, 300))
		}
	}
	for _, name := range x.Tools {
		if !slices.ContainsFunc(req.Tools, func(t llm.ToolDef) bool { return t.Name == name }) {
			return fmt.Sprintf("it does not offer the tool %s", name)
		}
	}
	if x.Messages > 0 && len(req.Messages) != x.Messages {
		return fmt.Sprintf("it has %d messages, not %d", len(req.Messages), x.Messages)
	}
	return ""
}

func requestText(req *llm.Request) string {
	var b strings.Builder
	b.WriteString(req.System)
	for _, m := range req.Messages {
		b.WriteByte('\n')
		b.WriteString(messageText(m))
	}
	return b.String()
}

func messageText(m *llm.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			b.WriteString(p.Text)
		case llm.ToolCall:
			fmt.Fprintf(&b, "%s %s%s", p.Name, p.Args, p.ArgsText)
		case llm.ToolResult:
			b.WriteString(p.Output)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// clip cuts a text to n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
