package openaichat

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the API's limit on the length of tool names.
const maxToolName = 64

// Encode returns the streamed form of the request: a prefix that stays the same for a
// run, one piece for each message, and the end. Its cost depends only on what is new.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	hosted, err := m.hosted(req)
	if err != nil {
		return nil, err
	}
	names := m.names.For(req.Tools, maxToolName)
	origin := m.provider + "/" + req.Model
	key := "chat/" + m.profile.Name + "/" + origin + names.Clashes()
	body := llm.NewAssembly(len(req.Messages) + 2)
	system, notes := wire.System(req, m.holdsSchema(req)), ""
	if !m.profile.LateSystem {
		notes = req.SystemNotes()
		system = joined(system, notes)
	}
	limit := m.caps.name(req.Model, m.profile.MaxTokens)
	body.Add(req.Memo.RequestPrefix(key, limit+notes, req, func() []byte {
		return m.appendPrefix(nil, req, hosted, names, system, limit)
	}))
	messages := req.Memo.Messages(key, req.Messages, func(dst []byte, msg *llm.Message) []byte {
		return m.appendMessage(dst, msg, names, msg.Origin == origin)
	})
	if err := lint.Request(conform.Chat, m.provider, key, req, messages); err != nil {
		return nil, err
	}
	wire.AddParted(body, messages, system == "")
	body.Add(llm.NewSegment(m.streamedEnd()))
	return body.Encoded(), nil
}

// The ends of a body. The call decides which one is sent, so that both share the
// encoded request.
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

// joined returns the system text followed by the notes.
func joined(system, notes string) string {
	if system == "" || notes == "" {
		return system + notes
	}
	return system + "\n\n" + notes
}

func (m *Model) appendPrefix(b []byte, req *llm.Request, hosted []Hosted, names *wire.Names, system, limit string) []byte {
	b = wire.AppendQuoted(append(b, `{"model":`...), req.Model)
	if req.MaxTokens > 0 {
		b = append(b, `,"`+limit+`":`...)
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

// CacheRules returns OpenAI's cache rules for a model; the rules of services that copy
// the API are unknown. The cache cannot be turned off.
func (m *Model) CacheRules(model string, _ llm.Caching) (llm.CacheRules, bool) {
	if !m.profile.CacheKey {
		return llm.CacheRules{}, false
	}
	return wire.OpenAICacheRules(model), true
}

var _ llm.Cacher = (*Model)(nil)

// holdsSchema reports whether the service enforces the request's schema. Servers that
// constrain the whole answer by a grammar would prevent tool calls, or reject or ignore
// either the schema or the tools.
func (m *Model) holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return m.profile.Format == FormatSchema || m.profile.Format == FormatSchemaAlone && len(req.Tools)+len(req.ProviderTools) == 0
}

func (m *Model) appendFormat(b []byte, req *llm.Request) []byte {
	switch {
	case m.holdsSchema(req):
		b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":`...)
		b = strconv.AppendBool(b, wire.StrictSchema(req.Schema))
		b = wire.AppendCompact(append(b, `,"schema":`...), req.Schema, "{}")
		return append(b, "}}"...)
	case len(req.Schema) > 0 && m.profile.Format == FormatObject && len(req.Tools) == 0:
		return append(b, `,"response_format":{"type":"json_object"}`...)
	}
	return b
}
