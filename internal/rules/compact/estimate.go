package compact

import (
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
)

// Tokens estimates the tokens of a text as its UTF-16 code units divided by 4, rounded
// up.
func Tokens(text string) int { return (units(text) + 3) / 4 }

// units counts UTF-16 code units. An invalid byte counts as one unit, like the
// replacement character.
func units(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return i + wideUnits(s[i:])
		}
	}
	return len(s)
}

func wideUnits(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}

// mediaTokens is the estimate for an image or a file, about the cost of a large image.
// Only the provider knows the real cost.
const mediaTokens = 1600

// Message estimates the tokens of one message: its texts, its calls with their
// arguments, its results, and the provider's opaque items.
func Message(m *llm.Message) int {
	n := 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			n += Tokens(p.Text)
		case llm.Reasoning:
			n += max(Tokens(p.Text), (len(p.Signature)+len(p.Raw)+3)/4)
		case llm.ToolCall:
			n += Tokens(p.Name) + (len(p.Args)+3)/4 + Tokens(p.ArgsText)
		case llm.ToolResult:
			n += Tokens(p.Output)
			for i := range p.Media {
				n += media(&p.Media[i])
			}
		case llm.Media:
			n += media(&p)
		case llm.Item:
			n += (len(p.Raw) + 3) / 4
		}
	}
	return n
}

// media estimates an image or a file. A text file counts as its text.
func media(m *llm.Media) int {
	if strings.HasPrefix(m.MediaType, "text/") && len(m.Data) > 0 {
		return (len(m.Data) + 3) / 4
	}
	return mediaTokens
}

// Messages estimates the tokens of a conversation.
func Messages(messages []*llm.Message) int {
	n := 0
	for _, m := range messages {
		n += Message(m)
	}
	return n
}

// Overhead estimates the part of every request that is not messages: the system text
// and the tools' names, descriptions and schemas.
func Overhead(system string, tools []llm.ToolDef) int {
	n := Tokens(system)
	for _, t := range tools {
		n += Tokens(t.Name) + Tokens(t.Description) + (len(t.Schema)+3)/4
	}
	return n
}

// Meter estimates a growing conversation and measures each message once. The zero value
// is ready to use. A Meter is not safe for concurrent use.
type Meter struct {
	last  *llm.Message
	sizes []int
	total int
}

// Measure returns the estimate of each message and their sum. If messages extends the
// conversation of the last call, Measure estimates only the new messages; otherwise it
// starts over. The slice is valid until the next call.
func (m *Meter) Measure(messages []*llm.Message) (sizes []int, total int) {
	if n := len(m.sizes); n > len(messages) || n > 0 && messages[n-1] != m.last {
		m.sizes, m.total = m.sizes[:0], 0
	}
	for _, msg := range messages[len(m.sizes):] {
		n := Message(msg)
		m.sizes = append(m.sizes, n)
		m.total += n
	}
	if n := len(messages); n > 0 {
		m.last = messages[n-1]
	}
	return m.sizes, m.total
}

// Reset discards the estimates. Call it after a change before the end of the
// conversation.
func (m *Meter) Reset() { *m = Meter{sizes: m.sizes[:0]} }
