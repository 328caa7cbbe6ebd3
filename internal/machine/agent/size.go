package agent

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// size follows how large the next request can be: what the provider reported
// of the last one, and the bytes that came since. It counts each message once.
type size struct {
	// fixed is the prompt and the tools, total the messages, in bytes.
	fixed int64
	total int64
	// reported is the last request with its answer, in tokens of model, and
	// since the bytes of the messages from then on.
	reported int64
	model    string
	from     int
	since    int64
	// counted is the number of messages that total holds.
	counted int
	// least is what the next request has at least in tokens, by a refusal of it.
	least int64
}

const (
	// messageOverhead and partOverhead are allowed for what a provider writes
	// around a message and a part.
	messageOverhead = 16
	partOverhead    = 32
	// mediaTokens is more than any provider counts for one image, and
	// documentTokens more than one counts for one document of pages.
	mediaTokens    = 8192
	documentTokens = 300_000
	// hostedTokens is allowed for a tool that the provider describes itself, and
	// toolWords for what it says of tools as such.
	hostedTokens = 4096
	toolWords    = 1024
	// schemaOverhead is for the words around a schema in the system text.
	schemaOverhead = 256
	// bytesPerToken is what text has on average; in the worst case it is 1.
	bytesPerToken = 4
)

func toolSize(t llm.ToolDef) int64 {
	return partOverhead + int64(len(t.Name)+len(t.Description)+len(t.Schema))
}

// answered takes in what a provider reported; next is where the messages begin
// that the report does not cover.
func (s *size) answered(d *event.ModelResponse, next int) {
	if d.Usage.Estimated || d.Usage.Input <= 0 {
		return
	}
	s.reported, s.model = d.Usage.Input+d.Usage.Output+partOverhead*int64(1+len(d.ToolCalls)), d.Model
	s.from, s.since, s.least = next, 0, 0
}

// measure counts the messages that are new, with what tools they tell the model
// of. A history that became shorter is counted again.
func (s *size) measure(messages []*llm.Message, tools []llm.ToolDef) {
	if len(messages) < s.counted {
		s.total, s.since, s.counted, s.reported, s.from, s.least = 0, 0, 0, 0, 0, 0
	}
	for i, m := range messages[s.counted:] {
		n := messageSize(m) + foundSize(m, tools)
		s.total += n
		if s.counted+i >= s.from {
			s.since += n
		}
	}
	s.counted = len(messages)
}

// tokens bounds the next request from above, and says what is to be expected.
// A token has at least one byte. Another model may count what is known twice.
func (s *size) tokens(model string, unread int64) (worst, likely int64) {
	all := s.fixed + s.total + unread
	if s.reported == 0 {
		return all, max(all/bytesPerToken, s.least)
	}
	known := s.reported
	if model != s.model {
		known *= 2
	}
	return min(all, known+s.since+unread), max(s.reported+(s.since+unread)/bytesPerToken, s.least)
}

// foundSize is that of the tools that a search in a message found: the provider,
// which has held them back so far, reads them there.
func foundSize(m *llm.Message, tools []llm.ToolDef) int64 {
	n := int64(0)
	for _, p := range m.Parts {
		if r, ok := p.(llm.ToolResult); ok && len(r.Tools) > 0 {
			for _, t := range tools {
				if t.Deferred && slices.Contains(r.Tools, t.Name) {
					n += toolSize(t)
				}
			}
		}
	}
	return n
}

func messageSize(m *llm.Message) int64 {
	n := int64(messageOverhead)
	for _, p := range m.Parts {
		n += partOverhead
		switch p := p.(type) {
		case llm.Text:
			n += int64(max(len(p.Text), len(p.Raw)))
		case llm.Reasoning:
			n += int64(max(len(p.Text)+len(p.Signature), len(p.Raw)))
		case llm.ToolCall:
			n += int64(max(len(p.Name)+len(p.Args)+len(p.ArgsText)+len(p.Signature), len(p.Raw)))
		case llm.ToolResult:
			n += int64(len(p.Output))
			for _, media := range p.Media {
				n += mediaSize(media)
			}
		case llm.Media:
			n += mediaSize(p)
		case llm.Item:
			n += int64(len(p.Raw))
		}
	}
	return n
}

// mediaSize is in tokens: those of a picture have nothing to do with its bytes, and
// a document may lie elsewhere.
func mediaSize(m llm.Media) int64 {
	switch {
	case strings.HasPrefix(m.MediaType, "image/"):
		return mediaTokens
	case strings.HasPrefix(m.MediaType, "text/") && len(m.Data) > 0:
		return int64(len(m.Data))
	case len(m.Data) == 0:
		return documentTokens
	}
	return min(int64(len(m.Data)), documentTokens)
}
