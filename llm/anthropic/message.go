package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// appendMessage appends a message with a comma before it, or nothing if no part of it
// can be sent to this model. The result depends only on the message and on the
// projection's wire name.
func (p *projection) appendMessage(dst []byte, provider string, m *llm.Message) []byte {
	if m.Role == llm.RoleSystem {
		return dst // it follows the system text
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

// native reports whether the provider-specific data of a message may be sent to this
// model: the service rejects thinking of another family.
func (p *projection) native(provider, origin string) bool {
	by, model, ok := strings.Cut(origin, "/")
	return ok && by == provider && modelFamily(model) == p.family
}

// modelFamily returns a model's name without the date of its snapshot.
func modelFamily(model string) string {
	model, _, _ = strings.Cut(model, "@")
	model = strings.TrimSuffix(model, "-latest")
	if i := strings.LastIndexByte(model, '-'); i >= 0 && len(model)-i == len("-20250929") && strings.Trim(model[i+1:], "0123456789") == "" {
		return model[:i]
	}
	return model
}

// appendPart appends one part as a block, or nothing.
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

// appendText omits text that is only white space, which the service rejects.
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

// appendReasoning appends a block of reasoning, or nothing if it lacks its signature:
// the service rejects such blocks.
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

// appendMembers appends the members of an object that was kept for a block.
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

// appendInput appends a call's arguments, which must be an object. Other arguments are
// shown to the model as a member with a descriptive name.
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

// callID returns the id of a call and its result for the service. An id of the service
// itself is sent back; ids of other services may be invalid or not unique, so Pawl's
// own id replaces them. Call and result have the same two ids, so the results agree.
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

// appendMedia appends an image or a document. A note in words replaces one that the
// service cannot accept, so that the model knows that it is missing.
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
