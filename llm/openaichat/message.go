package openaichat

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// appendMessage encodes one message as one or more messages of the API, each with a
// comma before it.
func (m *Model) appendMessage(b []byte, msg *llm.Message, names *wire.Names, own bool) []byte {
	switch msg.Role {
	case llm.RoleTool:
		for _, p := range msg.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				b = m.appendResult(b, r)
			}
		}
		return appendResultMedia(b, msg.Parts)
	case llm.RoleAssistant:
		return m.appendAssistant(b, msg.Parts, names, own)
	case llm.RoleSystem:
		if m.profile.LateSystem {
			b = wire.AppendQuoted(append(b, `,{"role":"system","content":`...), msg.Text())
			b = append(b, '}')
		}
		return b
	}
	b = append(b, `,{"role":"user","content":`...)
	return append(appendContent(b, msg.Parts), '}')
}

func (m *Model) appendResult(b []byte, r llm.ToolResult) []byte {
	b = wire.AppendQuoted(append(b, `,{"role":"tool","tool_call_id":`...), m.callID(r.ProviderID, r.CallID))
	return append(wire.AppendQuoted(append(b, `,"content":`...), r.Output), '}')
}

// appendResultMedia appends the images of results as a user message after them, because
// a tool message contains only text.
func appendResultMedia(b []byte, parts llm.Parts) []byte {
	var media llm.Parts
	for _, p := range parts {
		if r, ok := p.(llm.ToolResult); ok {
			for _, f := range r.Media {
				media = append(media, f)
			}
		}
	}
	if len(media) == 0 {
		return b
	}
	b = append(b, `,{"role":"user","content":`...)
	return append(appendContent(b, media), '}')
}

func appendContent(b []byte, parts llm.Parts) []byte {
	if len(parts) == 1 {
		if t, ok := parts[0].(llm.Text); ok {
			return wire.AppendQuoted(b, t.Text)
		}
	}
	b = append(b, '[')
	n := len(b)
	for _, p := range parts {
		if len(b) > n {
			b = append(b, ',')
			n = len(b)
		}
		switch p := p.(type) {
		case llm.Text:
			b = append(wire.AppendQuoted(append(b, `{"type":"text","text":`...), p.Text), '}')
		case llm.Media:
			b = appendMedia(b, p)
		}
	}
	return append(b, ']')
}

// Shows returns why an image cannot be shown to the model.
func (m *Model) Shows(f *llm.Media) error { return wire.OpenAIImages().Refused(f) }

func appendMedia(b []byte, f llm.Media) []byte {
	if text, ok := wire.FileText(&f); ok {
		return append(wire.AppendQuoted(append(b, `{"type":"text","text":`...), text), '}')
	}
	f, words := wire.OpenAIImages().Shown(f)
	if words != "" {
		return append(wire.AppendQuoted(append(b, `{"type":"text","text":`...), words), '}')
	}
	if strings.HasPrefix(f.MediaType, "image/") {
		return append(wire.AppendSource(append(b, `{"type":"image_url","image_url":{"url":`...), &f), "}}"...)
	}
	b = wire.AppendQuoted(append(b, `{"type":"file","file":{"filename":`...), f.Name)
	return append(wire.AppendSource(append(b, `,"file_data":`...), &f), "}}"...)
}

// appendAssistant encodes an answer. It omits one without any content for this service,
// such as another provider's search.
func (m *Model) appendAssistant(b []byte, parts llm.Parts, names *wire.Names, own bool) []byte {
	text := parts.Text()
	if text == "" && len(parts.ToolCalls()) == 0 && !own {
		return b
	}
	b = append(b, `,{"role":"assistant"`...)
	switch {
	case text != "":
		b = wire.AppendQuoted(append(b, `,"content":`...), text)
	case m.profile.EmptyContent:
		b = append(b, `,"content":""`...)
	}
	if own {
		b = m.appendReasoning(b, parts)
	}
	open := false
	for _, p := range parts {
		c, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		if !open {
			b, open = append(b, `,"tool_calls":[`...), true
		} else {
			b = append(b, ',')
		}
		b = m.appendCall(b, c, names)
	}
	if open {
		b = append(b, ']')
	}
	return append(b, '}')
}

func (m *Model) appendCall(b []byte, c llm.ToolCall, names *wire.Names) []byte {
	b = wire.AppendQuoted(append(b, `{"id":`...), m.callID(c.ProviderID, c.CallID))
	b = wire.AppendQuoted(append(b, `,"type":"function","function":{"name":`...), names.Wire(c.Name))
	return append(wire.AppendQuoted(append(b, `,"arguments":`...), string(wire.SentArguments(&c))), "}}"...)
}

// appendReasoning sends a model's reasoning back, complete, if its service wants that.
func (m *Model) appendReasoning(b []byte, parts llm.Parts) []byte {
	for _, p := range parts {
		r, ok := p.(llm.Reasoning)
		if !ok {
			continue
		}
		echo := m.profile.Echo
		if echo == EchoSame {
			if echo = Echo(wire.Text(r.Raw)); len(r.Raw) > 0 && r.Raw[0] == '[' {
				echo = EchoDetails
			}
		}
		switch {
		case echo == EchoDetails && len(r.Raw) > 0:
			return wire.AppendCompact(append(b, `,"reasoning_details":`...), r.Raw, "[]")
		case (echo == EchoContent || echo == EchoPlain) && r.Text != "":
			b = append(append(append(b, `,"`...), echo...), `":`...)
			return wire.AppendQuoted(b, r.Text)
		}
	}
	return b
}
