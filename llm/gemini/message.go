package gemini

import (
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// unsigned replaces the missing signature of a call: another provider's model made the
// call, or a gateway dropped Google's signature. Google documents it for the first call
// of a step only.
const unsigned = "skip_thought_signature_validator"

// encoder renders the messages of one request.
type encoder struct {
	names *wire.Names
	// own reports that this model made the message, so its signatures are valid; signs
	// reports that the model requires signatures.
	own, signs bool
	open       bool
}

func (e *encoder) appendMessage(b []byte, msg *llm.Message) []byte {
	role := "user"
	switch msg.Role {
	case llm.RoleAssistant:
		role = "model"
	case llm.RoleSystem:
		return b // it follows the system text
	}
	b = append(append(append(b, `,{"role":"`...), role...), `","parts":[`...)
	start := len(b)
	signed := false
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case llm.Text:
			b = e.appendText(b, p)
		case llm.Reasoning:
			b = e.appendThought(b, p)
		case llm.ToolCall:
			b = e.appendCall(b, p, !signed)
			signed = true
		case llm.ToolResult:
			b = e.appendResult(b, p)
		case llm.Media:
			b = appendMedia(e.comma(b), p)
		case llm.Item:
			if e.own {
				b = wire.AppendCompact(e.comma(b), p.Raw, "{}")
			}
		}
	}
	if len(b) == start {
		b = append(b, `{"text":""}`...)
	}
	return append(b, "]}"...)
}

func (e *encoder) comma(b []byte) []byte {
	if e.open {
		b = append(b, ',')
	}
	e.open = true
	return b
}

func (e *encoder) appendText(b []byte, t llm.Text) []byte {
	signature := ""
	if e.own {
		signature = wire.Text(wire.Member(t.Raw, "thoughtSignature"))
	}
	if t.Text == "" && signature == "" {
		return b
	}
	b = wire.AppendQuoted(append(e.comma(b), `{"text":`...), t.Text)
	return append(appendSignature(b, signature), '}')
}

func appendSignature(b []byte, signature string) []byte {
	if signature == "" {
		return b
	}
	return wire.AppendQuoted(append(b, `,"thoughtSignature":`...), signature)
}

// appendThought appends a signed thought. An unsigned one is a summary for people that
// the model does not need.
func (e *encoder) appendThought(b []byte, r llm.Reasoning) []byte {
	if !e.own || r.Signature == "" {
		return b
	}
	b = wire.AppendQuoted(append(e.comma(b), `{"text":`...), r.Text)
	return append(appendSignature(append(b, `,"thought":true`...), r.Signature), '}')
}

func (e *encoder) appendCall(b []byte, c llm.ToolCall, first bool) []byte {
	b = append(e.comma(b), `{"functionCall":{`...)
	if c.ProviderID != "" && e.own {
		b = append(wire.AppendQuoted(append(b, `"id":`...), c.ProviderID), ',')
	}
	b = wire.AppendQuoted(append(b, `"name":`...), e.names.Wire(c.Name))
	b = append(wire.AppendCompact(append(b, `,"args":`...), wire.SentArguments(&c), "{}"), '}')
	signature := ""
	if e.own {
		signature = c.Signature
	}
	if signature == "" && first && e.signs {
		signature = unsigned
	}
	return append(appendSignature(b, signature), '}')
}

func (e *encoder) appendResult(b []byte, r llm.ToolResult) []byte {
	b = append(e.comma(b), `{"functionResponse":{`...)
	if r.ProviderID != "" {
		b = append(wire.AppendQuoted(append(b, `"id":`...), r.ProviderID), ',')
	}
	b = wire.AppendQuoted(append(b, `"name":`...), e.names.Wire(r.Name))
	member := `,"response":{"output":`
	if r.IsError {
		member = `,"response":{"error":`
	}
	b = append(wire.AppendQuoted(append(b, member...), r.Output), "}}}"...)
	for _, f := range r.Media {
		b = appendMedia(e.comma(b), f)
	}
	return b
}

// images returns the API's limits on images.
func images() wire.Images {
	return wire.Images{Types: []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}}
}

// Shows returns why an image cannot be shown to the model.
func (m *Model) Shows(f *llm.Media) error { return images().Refused(f) }

func appendMedia(b []byte, f llm.Media) []byte {
	f, words := images().Shown(f)
	if words != "" {
		return append(wire.AppendQuoted(append(b, `{"text":`...), words), '}')
	}
	if f.URL != "" {
		b = wire.AppendQuoted(append(b, `{"fileData":{"mimeType":`...), f.MediaType)
		return append(wire.AppendQuoted(append(b, `,"fileUri":`...), f.URL), "}}"...)
	}
	b = wire.AppendQuoted(append(b, `{"inlineData":{"mimeType":`...), f.MediaType)
	return append(wire.AppendBase64(append(b, `,"data":`...), f.Data), "}}"...)
}
