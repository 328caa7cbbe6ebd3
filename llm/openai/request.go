package openai

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Encode returns the streamed form of the request: a prefix that stays the same for a
// run, one piece for each message, and the end. Its cost depends only on what is new.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	for _, name := range req.ProviderTools {
		if len(providerTool(name)) == 0 {
			return nil, wire.UnknownProviderTool(m.provider, name, providerTools)
		}
	}
	p := projection{origin: m.provider + "/" + req.Model, offered: m.offer(req)}
	name := p.origin + p.names.Clashes()
	if p.search != nil {
		name += "+" + searchTool // searches are encoded differently then
	}
	body := llm.NewAssembly(len(req.Messages) + 3)
	body.Add(req.Memo.RequestPrefix(name, m.variant, req, func() []byte {
		return m.appendPrefix(nil, req, &p.offered)
	}))
	messages, encode := make([]llm.Segment, len(req.Messages)), p.appendMessage
	for i, msg := range req.Messages {
		p.before, p.behind = req.Messages[:i], req.Messages[i+1:]
		messages[i] = req.Memo.Message(name, msg, encode)
	}
	if err := lint.Request(conform.Responses, m.provider, name, req, messages); err != nil {
		return nil, err
	}
	if m.pinsTask(req) && len(messages[0].Bytes) > 0 {
		addPinned(body, messages[0])
		wire.AddParted(body, messages[1:], false)
	} else {
		wire.AddParted(body, messages, true)
	}
	body.Add(llm.NewSegment(streamedEnd))
	return body.Encoded(), nil
}

// The ends of a body. The call decides which one is sent, so that both share the
// encoded request.
var (
	streamedEnd = []byte(`],"stream":true}`)
	wholeEnd    = []byte(`]}`)
)

func (m *Model) appendPrefix(b []byte, req *llm.Request, offered *offered) []byte {
	b = append(b, `{"model":`...)
	b = wire.AppendQuoted(b, req.Model)
	b = append(b, `,"store":false`...)
	if req.MaxTokens > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	if req.Temperature != nil {
		b = append(b, `,"temperature":`...)
		b = strconv.AppendFloat(b, *req.Temperature, 'f', -1, 64)
	}
	b = m.appendExtra(b, req)
	if reasons(req.Model) {
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
	}
	b = m.appendCaching(b, req)
	held := holdsSchema(req)
	b = appendMember(b, "instructions", wire.System(req, held))
	if held {
		b = append(b, `,"text":{"format":{"type":"json_schema","name":"answer","strict":`...)
		b = strconv.AppendBool(b, wire.StrictSchema(req.Schema))
		b = wire.AppendCompact(append(b, `,"schema":`...), req.Schema, "{}")
		b = append(b, "}}"...)
	}
	b = appendTools(b, req, offered)
	return append(b, `,"input":[`...)
}

// reasons reports whether a model can return encrypted reasoning. The service rejects a
// request for it from a model that cannot reason. Unknown models count as reasoning
// models.
func reasons(model string) bool {
	model = strings.ToLower(model)
	model = strings.TrimPrefix(model, "ft:")
	for _, family := range []string{"gpt-3", "gpt-4", "chatgpt", "gpt-5-chat"} {
		if strings.HasPrefix(model, family) {
			return false
		}
	}
	return !strings.HasSuffix(model, "-chat-latest")
}

// appendExtra appends the owner's additional members, except those that the request
// itself has.
func (m *Model) appendExtra(b []byte, req *llm.Request) []byte {
	return wire.AppendExtra(b, m.extra, func(name string) bool {
		switch name {
		case "model", "store", "include", "instructions", "input", "tools", "stream":
			return true
		case "max_output_tokens":
			return req.MaxTokens > 0
		case "temperature":
			return req.Temperature != nil
		case "prompt_cache_key":
			return req.CacheKey != "" && req.Cache != llm.CacheOff
		case "text":
			return holdsSchema(req)
		}
		return false
	})
}

func appendTools(b []byte, req *llm.Request, offered *offered) []byte {
	if len(req.Tools)+len(req.ProviderTools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	start := len(b)
	for i := range req.Tools {
		b = append(b, ',')
		b = offered.appendTool(b, &req.Tools[i])
	}
	for _, name := range req.ProviderTools {
		b = wire.AppendCompact(append(b, ','), providerTool(name), "null")
	}
	return append(dropByte(b, start), ']')
}

// providerTools are the tools that the service runs itself and that need no
// settings. Others can be given as JSON.
var providerTools = map[string]string{
	"web_search":                    `{"type":"web_search"}`,
	"web_search_2025_08_26":         `{"type":"web_search_2025_08_26"}`,
	"web_search_preview":            `{"type":"web_search_preview"}`,
	"web_search_preview_2025_03_11": `{"type":"web_search_preview_2025_03_11"}`,
	"code_interpreter":              `{"type":"code_interpreter","container":{"type":"auto"}}`,
	"image_generation":              `{"type":"image_generation"}`,
}

// providerTool returns the definition of a tool that the service runs, nil for any
// other.
func providerTool(name string) []byte {
	if whole, ok := wire.ProviderToolAsJSON(name); ok {
		return whole
	}
	return []byte(providerTools[name])
}

// appendMember appends a string member if the value is not empty.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, ',')
	b = wire.AppendQuoted(b, name)
	b = append(b, ':')
	return wire.AppendQuoted(b, value)
}

// holdsSchema reports whether the request has a schema that the service enforces;
// OpenAI's own models do since gpt-4o.
func holdsSchema(req *llm.Request) bool {
	model := strings.TrimPrefix(strings.ToLower(req.Model), "ft:")
	return len(req.Schema) > 0 && !req.SchemaInPrompt && !strings.HasPrefix(model, "gpt-3") && model != "gpt-4" &&
		!strings.HasPrefix(model, "gpt-4-") && !strings.HasPrefix(model, "chatgpt")
}

// appendParameters appends a tool's schema. The service rejects one that is not an
// object schema with properties, even if there are none.
func appendParameters(b []byte, schema []byte) []byte {
	var hasType, hasProperties bool
	members := wire.ScanObject(schema)
	n := 0
	for ; members.Next(); n++ {
		hasType = hasType || string(members.Key()) == "type"
		hasProperties = hasProperties || string(members.Key()) == "properties"
	}
	if n == 0 || members.Err() != nil {
		return append(b, `{"type":"object","properties":{}}`...)
	}
	b = wire.AppendCompact(b, schema, "{}")
	b = b[:len(b)-1]
	if !hasType {
		b = append(b, `,"type":"object"`...)
	}
	if !hasProperties {
		b = append(b, `,"properties":{}`...)
	}
	return append(b, '}')
}
