package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// appendMessage writes a message with a comma before it, or nothing when no
// part of it can be said to this model. It depends on the message and on the
// projection's wire name alone.
func (p *projection) appendMessage(dst []byte, provider string, m *llm.Message) []byte {
	if m.Role == llm.RoleSystem {
		return dst // it stands behind the system text
	}
	start := len(dst)
	role := "user"
	if m.Role == llm.RoleAssistant {
		role = "assistant"
	}
	dst = append(dst, `,{"role":"`...)
	dst = append(dst, role...)
	dst = append(dst, `","content":[`...)
	empty := len(dst)
	native := m.Role == llm.RoleAssistant && p.native(provider, m.Origin)
	for _, part := range m.Parts {
		mark := len(dst)
		if mark > empty {
			dst = append(dst, ',')
		}
		begin := len(dst)
		dst = p.appendPart(dst, part, native)
		if len(dst) == begin {
			dst = dst[:mark]
		}
	}
	if len(dst) == empty {
		return dst[:start]
	}
	return append(dst, `]}`...)
}

// native reports whether what a message holds for its maker only may go to this
// model: thinking of another family is refused by the service.
func (p *projection) native(provider, origin string) bool {
	by, model, ok := strings.Cut(origin, "/")
	return ok && by == provider && modelFamily(model) == p.family
}

// modelFamily is a model's name without the date of its snapshot.
func modelFamily(model string) string {
	model, _, _ = strings.Cut(model, "@")
	model = strings.TrimSuffix(model, "-latest")
	if i := strings.LastIndexByte(model, '-'); i >= 0 && len(model)-i == len("-20250929") && strings.Trim(model[i+1:], "0123456789") == "" {
		return model[:i]
	}
	return model
}

// appendPart writes one part as a block, or nothing.
func (p *projection) appendPart(dst []byte, part llm.Part, native bool) []byte {
	switch v := part.(type) {
	case llm.Text:
		return appendText(dst, v, native)
	case llm.Reasoning:
		if native {
			return appendReasoning(dst, v)
		}
	case llm.Media:
		return p.appendMedia(dst, v)
	case llm.ToolCall:
		return p.appendCall(dst, v, native)
	case llm.ToolResult:
		return p.appendResult(dst, v)
	case llm.Item:
		if native {
			return wire.AppendCompact(dst, v.Raw, "")
		}
	}
	return dst
}

// appendText leaves out text that is only space, which the service refuses.
func appendText(dst []byte, t llm.Text, native bool) []byte {
	if strings.TrimSpace(t.Text) == "" {
		return dst
	}
	dst = append(dst, `{"type":"text","text":`...)
	dst = wire.AppendQuoted(dst, t.Text)
	if native {
		dst = appendMembers(dst, t.Raw)
	}
	return append(dst, '}')
}

// appendReasoning echoes a block whole or not at all: one without its signature
// is refused.
func appendReasoning(dst []byte, r llm.Reasoning) []byte {
	if r.Signature == "" {
		return wire.AppendCompact(dst, r.Raw, "")
	}
	dst = append(dst, `{"type":"thinking","thinking":`...)
	dst = wire.AppendQuoted(dst, r.Text)
	dst = append(dst, `,"signature":`...)
	dst = wire.AppendQuoted(dst, r.Signature)
	return append(appendMembers(dst, r.Raw), '}')
}

// appendMembers adds the members of an object that was kept beside a block.
func appendMembers(dst []byte, raw json.RawMessage) []byte {
	if len(raw) <= len(`{}`) || raw[0] != '{' {
		return dst
	}
	dst = append(dst, ',')
	raw = wire.Sound(raw)
	return append(dst, raw[1:len(raw)-1]...)
}

func (p *projection) appendCall(dst []byte, c llm.ToolCall, native bool) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = wire.AppendQuoted(dst, callID(c.CallID, c.ProviderID))
	dst = append(dst, `,"name":`...)
	dst = wire.AppendQuoted(dst, p.names.Wire(c.Name))
	dst = append(dst, `,"input":`...)
	dst = appendInput(dst, c)
	if native {
		dst = appendMembers(dst, c.Raw)
	}
	return append(dst, '}')
}

// appendInput writes a call's arguments, which must be an object here. What is
// none is shown to the model under a name that says so.
func appendInput(dst []byte, c llm.ToolCall) []byte {
	raw := bytes.TrimSpace(c.Args)
	if wire.Object(raw) {
		return wire.AppendCompact(dst, raw, "{}")
	}
	text := c.ArgsText
	if len(raw) > 0 && string(raw) != "null" {
		text = string(raw)
	}
	if text == "" {
		return append(dst, `{}`...)
	}
	dst = append(dst, `{"unreadable_arguments":`...)
	return append(wire.AppendQuoted(dst, text), '}')
}

// callID is the id under which a call and its result are known to the service.
// An id of its own goes back; any other may be unfit or not unique, so ours
// stands in. Call and result hold the same two ids, so they agree.
func callID(ours, provider string) string {
	if strings.HasPrefix(provider, "toolu_") || ours == "" {
		return provider
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, ours)
}

func (p *projection) appendResult(dst []byte, r llm.ToolResult) []byte {
	dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
	dst = wire.AppendQuoted(dst, callID(r.CallID, r.ProviderID))
	switch {
	case len(r.Media) > 0:
		dst = append(dst, `,"content":[`...)
		if strings.TrimSpace(r.Output) != "" {
			dst = append(dst, `{"type":"text","text":`...)
			dst = append(wire.AppendQuoted(dst, r.Output), `},`...)
		}
		for i, m := range r.Media {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = p.appendMedia(dst, m)
		}
		dst = append(dst, ']')
	case strings.TrimSpace(r.Output) != "":
		dst = append(dst, `,"content":`...)
		dst = wire.AppendQuoted(dst, r.Output)
	}
	if r.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// appendMedia writes an image or a document. What the service cannot take is
// named in words, so that the model knows that something is missing.
func (p *projection) appendMedia(dst []byte, m llm.Media) []byte {
	m, words := p.images.Shown(m)
	if words != "" {
		return appendText(dst, llm.Text{Text: words}, false)
	}
	kind, title := "document", m.Name
	switch {
	case strings.HasPrefix(m.MediaType, "image/"):
		kind, title = "image", ""
	case m.MediaType == "application/pdf", m.URL != "":
	case strings.HasPrefix(m.MediaType, "text/"):
		dst = append(dst, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":`...)
		dst = append(wire.AppendQuoted(dst, string(m.Data)), '}')
		return appendTitle(dst, title)
	default:
		return appendText(dst, llm.Text{Text: fmt.Sprintf("[the file %q of type %q cannot be shown to this model]", m.Name, m.MediaType)}, false)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	if m.URL != "" {
		dst = append(dst, `","source":{"type":"url","url":`...)
		dst = append(wire.AppendQuoted(dst, m.URL), '}')
		return appendTitle(dst, title)
	}
	dst = append(dst, `","source":{"type":"base64","media_type":`...)
	dst = wire.AppendQuoted(dst, m.MediaType)
	dst = append(dst, `,"data":`...)
	dst = append(wire.AppendBase64(dst, m.Data), '}')
	return appendTitle(dst, title)
}

func appendTitle(dst []byte, title string) []byte {
	if title != "" {
		dst = append(dst, `,"title":`...)
		dst = wire.AppendQuoted(dst, title)
	}
	return append(dst, '}')
}
