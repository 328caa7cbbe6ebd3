package openaichat

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the longest tool name that the API takes.
const maxToolName = 64

// Encode gives the bytes that Stream sends: what does not change within a run
// first, then one segment per message, and the end.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	hosted, err := m.hosted(req)
	if err != nil {
		return nil, err
	}
	names := m.names.For(req.Tools, maxToolName)
	origin := m.opts.Provider + "/" + req.Model
	key := "chat/" + m.profile.Name + "/" + origin + names.Clashes()
	segments := make([]llm.Segment, 0, len(req.Messages)+2)
	system, notes := m.system(req), ""
	if !m.profile.LateSystem {
		notes = req.SystemNotes()
		system = joined(system, notes)
	}
	segments = append(segments, req.Memo.RequestPrefix(key, notes, req, func() []byte {
		return m.appendPrefix(nil, req, hosted, names, system)
	}))
	encode := func(msg *llm.Message) []byte { return m.appendMessage(nil, msg, names, msg.Origin == origin) }
	for _, msg := range req.Messages {
		segments = append(segments, req.Memo.Message(key, msg, encode))
	}
	if err := lint.Request(conform.Chat, m.opts.Provider, key, req, segments[1:]); err != nil {
		return nil, err
	}
	segments = wire.AppendParted(segments[:1], segments[1:], system == "")
	return llm.Assemble(append(segments, llm.NewSegment(m.streamedEnd()))...), nil
}

// The ends of a body. Which one is sent is decided by the call, so that the
// same encoded request serves both.
var (
	streamedEnd         = []byte(`],"stream":true}`)
	streamedAndUsageEnd = []byte(`],"stream":true,"stream_options":{"include_usage":true}}`)
	wholeEnd            = []byte(`]}`)
)

func (m *Model) streamedEnd() []byte {
	if m.profile.NoUsageOption {
		return streamedEnd
	}
	return streamedAndUsageEnd
}

// joined is the system text with notes behind it.
func joined(system, notes string) string {
	if system == "" || notes == "" {
		return system + notes
	}
	return system + "\n\n" + notes
}

func (m *Model) appendPrefix(b []byte, req *llm.Request, hosted []Hosted, names *wire.Names, system string) []byte {
	b = wire.AppendQuoted(append(b, `{"model":`...), req.Model)
	if req.MaxTokens > 0 {
		b = append(b, `,"`+m.profile.MaxTokens+`":`...)
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	if req.Temperature != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *req.Temperature, 'g', -1, 64)
	}
	if m.profile.CacheKey && req.CacheKey != "" && req.Cache != llm.CacheOff {
		b = wire.AppendQuoted(append(b, `,"prompt_cache_key":`...), req.CacheKey)
	}
	b = m.appendFormat(b, req)
	b = appendTools(b, req.Tools, hosted, names)
	b = append(b, `,"messages":[`...)
	if system != "" {
		b = append(wire.AppendQuoted(append(b, `{"role":"system","content":`...), system), '}')
	}
	return b
}

func appendTools(b []byte, tools []llm.ToolDef, hosted []Hosted, names *wire.Names) []byte {
	first := len(b)
	for _, t := range tools {
		b = wire.AppendQuoted(append(b, `,{"type":"function","function":{"name":`...), names.Wire(t.Name))
		if t.Description != "" {
			b = wire.AppendQuoted(append(b, `,"description":`...), t.Description)
		}
		b = wire.AppendCompact(append(b, `,"parameters":`...), t.Schema, "{}")
		b = append(b, "}}"...)
	}
	for _, h := range hosted {
		if h.Entry != "" {
			b = wire.AppendCompact(append(b, ','), json.RawMessage(h.Entry), "{}")
		}
	}
	if len(b) > first {
		b = append(slices.Replace(b, first, first+1, []byte(`,"tools":[`)...), ']')
	}
	for _, h := range hosted {
		if h.Member != "" {
			b = append(append(b, ','), h.Member...)
		}
	}
	return b
}

// appendMessage renders one message of ours as one or more of the API's, each
// with the comma before it.
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

// appendResultMedia gives the images of results as a user message behind them,
// because a tool message holds text only.
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

func appendMedia(b []byte, f llm.Media) []byte {
	if text, ok := wire.FileText(&f); ok {
		return append(wire.AppendQuoted(append(b, `{"type":"text","text":`...), text), '}')
	}
	source := f.URL
	if source == "" {
		source = "data:" + f.MediaType + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
	}
	if strings.HasPrefix(f.MediaType, "image/") {
		return append(wire.AppendQuoted(append(b, `{"type":"image_url","image_url":{"url":`...), source), "}}"...)
	}
	b = wire.AppendQuoted(append(b, `{"type":"file","file":{"filename":`...), f.Name)
	return append(wire.AppendQuoted(append(b, `,"file_data":`...), source), "}}"...)
}

// appendAssistant renders an answer. One of which nothing can be said here, such
// as a search that another provider ran, is left out.
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
	args := c.ArgsText
	if len(c.Args) > 0 {
		args = string(c.Args)
	}
	b = wire.AppendQuoted(append(b, `{"id":`...), m.callID(c.ProviderID, c.CallID))
	b = wire.AppendQuoted(append(b, `,"type":"function","function":{"name":`...), names.Wire(c.Name))
	return append(wire.AppendQuoted(append(b, `,"arguments":`...), args), "}}"...)
}

// appendReasoning sends a model its own thoughts back, whole, where its
// service wants them.
func (m *Model) appendReasoning(b []byte, parts llm.Parts) []byte {
	for _, p := range parts {
		r, ok := p.(llm.Reasoning)
		switch {
		case !ok:
		case m.profile.Echo == EchoDetails && len(r.Raw) > 0:
			return wire.AppendCompact(append(b, `,"reasoning_details":`...), r.Raw, "[]")
		case (m.profile.Echo == EchoContent || m.profile.Echo == EchoPlain) && r.Text != "":
			b = append(append(append(b, `,"`...), m.profile.Echo...), `":`...)
			return wire.AppendQuoted(b, r.Text)
		}
	}
	return b
}
