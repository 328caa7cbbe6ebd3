package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// projection converts messages to input items. Each item is appended with a comma
// before it.
type projection struct {
	// origin is the target of the request. Only items that this target made are sent
	// back in their own form.
	origin string
	offered
	// before and behind are the messages around the encoded one; they determine the
	// kind of a call and of its result.
	before, behind []*llm.Message
}

func (p *projection) appendMessage(b []byte, m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleAssistant:
		return p.appendAssistant(b, m)
	case llm.RoleTool:
		return p.appendResults(b, m)
	case llm.RoleSystem:
		return appendSaid(b, "developer", m)
	}
	return appendSaid(b, "user", m)
}

// appendSaid appends a text message.
func appendSaid(b []byte, role string, m *llm.Message) []byte {
	start := len(b)
	b = append(b, `,{"type":"message","role":"`...)
	b = append(append(b, role...), `","content":[`...)
	content := len(b)
	for _, part := range m.Parts {
		switch part := part.(type) {
		case llm.Text:
			b = appendInputText(b, part.Text)
		case llm.Media:
			b = appendMedia(b, &part)
		}
	}
	if len(b) == content {
		return b[:start]
	}
	return append(dropByte(b, content), "]}"...)
}

// dropByte removes the byte at i: the leading comma.
func dropByte(b []byte, i int) []byte { return append(b[:i], b[i+1:]...) }

// Shows returns why an image cannot be shown to the model.
func (m *Model) Shows(f *llm.Media) error { return wire.OpenAIImages().Refused(f) }

func appendInputText(b []byte, text string) []byte {
	b = append(b, `,{"type":"input_text","text":`...)
	b = wire.AppendQuoted(b, text)
	return append(b, '}')
}

// appendMedia appends an image as an image, a text as text, and everything else as a
// file.
func appendMedia(b []byte, m *llm.Media) []byte {
	if text, ok := wire.FileText(m); ok {
		return appendInputText(b, text)
	}
	shown, words := wire.OpenAIImages().Shown(*m)
	if words != "" {
		return appendInputText(b, words)
	}
	m = &shown
	if strings.HasPrefix(m.MediaType, "image/") {
		b = append(b, `,{"type":"input_image","detail":"auto","image_url":`...)
		b = wire.AppendSource(b, m)
		return append(b, '}')
	}
	b = append(b, `,{"type":"input_file"`...)
	if len(m.Data) == 0 {
		b = append(b, `,"file_url":`...)
	} else {
		name := m.Name
		if name == "" {
			name = "file"
		}
		b = appendMember(b, "filename", name)
		b = append(b, `,"file_data":`...)
	}
	b = wire.AppendSource(b, m)
	return append(b, '}')
}

// appendAssistant appends an answer's items in order. Reasoning precedes the item that
// it produced and is never last; ids are sent only after reasoning that is sent back,
// because the service rejects one without the other.
func (p *projection) appendAssistant(b []byte, m *llm.Message) []byte {
	own := m.Origin == p.origin
	var behindReasoning bool
	for i := 0; i < len(m.Parts); {
		n := 1
		switch part := m.Parts[i].(type) {
		case llm.Reasoning:
			if own && i < len(m.Parts)-1 && replayable(part.Raw) {
				b = appendRaw(b, part.Raw)
				behindReasoning = true
			}
		case llm.Text:
			b, n = appendOutput(b, m.Parts[i:], own, behindReasoning)
		case llm.ToolCall:
			b = p.appendCall(b, &part, own, behindReasoning)
		case llm.Item:
			if own {
				b = appendRaw(b, part.Raw)
			}
		}
		i += n
	}
	return b
}

// replayable reports whether a service that stored nothing can use a reasoning item: it
// must contain the reasoning, encrypted or in plain text, because the service cannot
// resolve an id.
func replayable(raw []byte) bool {
	members := wire.ScanObject(raw)
	for members.Next() {
		switch string(members.Key()) {
		case "encrypted_content":
			if len(members.Value()) > 2 && members.Value()[0] == '"' {
				return true
			}
		case "content":
			if content := wire.ScanArray(members.Value()); content.Next() {
				return true
			}
		}
	}
	return false
}

func appendRaw(b []byte, raw []byte) []byte {
	start := len(b)
	b = append(b, ',')
	b = wire.AppendCompact(b, raw, "")
	if len(b) == start+1 {
		return b[:start]
	}
	return b
}

// appendOutput appends the leading text parts that were one item, and returns their
// number.
func appendOutput(b []byte, parts llm.Parts, own, withID bool) ([]byte, int) {
	start := len(b)
	first, _ := parts[0].(llm.Text)
	b = append(b, `,{"type":"message","role":"assistant"`...)
	var kept keptText
	if own {
		kept = readKeptText(first.Raw)
		b = appendMember(b, "phase", kept.phase)
		if withID && kept.id != "" {
			b = appendMember(b, "id", kept.id)
			b = append(b, `,"status":"completed"`...)
		}
	}
	b = append(b, `,"content":[`...)
	content, n := len(b), 0
	for _, part := range parts {
		text, ok := part.(llm.Text)
		if !ok {
			break
		}
		of := keptText{}
		if own {
			of = readKeptText(text.Raw)
		}
		if n > 0 && of.id != kept.id {
			break
		}
		b = of.appendContent(b, text.Text)
		n++
	}
	if len(b) == content {
		return b[:start], n
	}
	return append(dropByte(b, content), "]}"...), n
}

func (p *projection) appendCall(b []byte, c *llm.ToolCall, own, withID bool) []byte {
	var kept keptCall
	if own {
		kept = readKeptCall(c.Raw)
	}
	if kept.kind == searchCall {
		if p.finds(c) {
			return appendSearchCall(b, c, &kept, withID)
		}
		kept = keptCall{}
	}
	kind, member := "function_call", "arguments"
	if kept.kind == customCall {
		kind, member = customCall, "input"
	}
	b = append(b, `,{"type":"`...)
	b = append(b, kind...)
	b = append(b, '"')
	if withID {
		b = appendMember(b, "id", kept.id)
	}
	b = appendMember(b, "call_id", callID(c.ProviderID, c.CallID))
	b = appendMember(b, "name", p.names.Wire(c.Name))
	b = appendMember(b, "namespace", kept.namespace)
	b = append(b, `,"`...)
	b = append(b, member...)
	b = append(b, `":`...)
	b = appendArguments(b, c, kept.kind == customCall)
	return append(b, '}')
}

// appendArguments appends the model's arguments as a string.
func appendArguments(b []byte, c *llm.ToolCall, custom bool) []byte {
	if custom {
		return wire.AppendQuoted(b, customInput(c.Args))
	}
	return wire.AppendQuoted(b, string(wire.AppendCompact(nil, wire.SentArguments(c), "{}")))
}

// Some services count ids from zero in every answer. Such ids are ambiguous, so ours
// replace them; ids shorter than this count as such.
const (
	shortID   = 12
	maxCallID = 64
)

// callID returns the id that pairs a call with its result on the wire.
func callID(provider, ours string) string {
	id := provider
	switch {
	case id == "":
		id = ours
	case len(id) < shortID && ours != "":
		id = provider + "_" + ours
	default:
		return id
	}
	if len(id) > maxCallID {
		sum := sha256.Sum256([]byte(id))
		return "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

func (p *projection) appendResults(b []byte, m *llm.Message) []byte {
	for _, part := range m.Parts {
		r, ok := part.(llm.ToolResult)
		if !ok {
			continue
		}
		kind := "function_call_output"
		switch call := p.answered(&r); readKeptCall(call.Raw).kind {
		case customCall:
			kind = "custom_tool_call_output"
		case searchCall:
			if p.found(&call, &r) {
				b = p.appendFound(b, &r)
				continue
			}
		}
		b = append(b, `,{"type":"`...)
		b = append(b, kind...)
		b = append(b, '"')
		b = appendMember(b, "call_id", callID(r.ProviderID, r.CallID))
		b = append(b, `,"output":`...)
		b = appendOutputOf(b, &r)
		b = append(b, '}')
	}
	return b
}

// answered returns the call that a result answers, if the target of the request made
// the call.
func (p *projection) answered(r *llm.ToolResult) llm.ToolCall {
	if len(p.before) == 0 {
		return llm.ToolCall{}
	}
	previous := p.before[len(p.before)-1]
	if previous.Origin != p.origin {
		return llm.ToolCall{}
	}
	for _, part := range previous.Parts {
		if c, ok := part.(llm.ToolCall); ok && c.CallID == r.CallID && c.ProviderID == r.ProviderID {
			return c
		}
	}
	return llm.ToolCall{}
}

func appendOutputOf(b []byte, r *llm.ToolResult) []byte {
	if len(r.Media) == 0 {
		return wire.AppendQuoted(b, r.Output)
	}
	b = append(b, '[')
	start := len(b)
	if r.Output != "" {
		b = appendInputText(b, r.Output)
	}
	for i := range r.Media {
		b = appendMedia(b, &r.Media[i])
	}
	return append(dropByte(b, start), ']')
}
