package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the API's limit on the length of tool names.
const maxToolName = 128

// The ends of a body. The call decides which one is sent, so that both share the
// encoded request.
var (
	streamedEnd = []byte(`],"stream":true}`)
	wholeEnd    = []byte(`]}`)
)

// projection holds the settings that the encoding of a request's messages depends on.
type projection struct {
	names *wire.Names
	// family decides which reasoning is sent back.
	family string
	// wire identifies the encoding of a message in the memo.
	wire string
	// images holds the limits on images in this request.
	images wire.Images
}

// Encode returns the streamed form of the request: a prefix that stays the same for a
// run, one piece for each message, and the end. Its cost depends only on what is new.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	for _, name := range req.ProviderTools {
		if len(providerTool(name)) == 0 {
			return nil, wire.UnknownProviderTool(m.provider, name, providerTools)
		}
	}
	p := &projection{names: m.names.For(req.Tools, maxToolName), family: modelFamily(req.Model)}
	p.images = images(countImages(req.Messages))
	p.wire = m.provider + "/" + p.family + p.names.Clashes()
	if p.images.Side == maxManySide {
		p.wire += "+many" // large images are encoded differently
	}
	messages := req.Memo.Messages(p.wire, req.Messages, func(dst []byte, msg *llm.Message) []byte {
		return p.appendMessage(dst, m.provider, msg)
	})
	if err := lint.Request(conform.Anthropic, m.provider, p.wire, req, messages); err != nil {
		return nil, err
	}
	body := llm.NewAssembly(len(messages) + maxMarks + 2)
	notes := req.SystemNotes()
	body.Add(req.Memo.RequestPrefix(p.wire, m.variant+notes, req, func() []byte { return m.appendPrefix(nil, p, req, notes) }))
	mark, marked := m.mark(req.Cache), m.marks(req, messages)
	first := true
	for i, seg := range messages {
		if len(seg.Bytes) == 0 {
			continue
		}
		if first {
			// Each message begins with the comma that separates it from the previous
			// one.
			seg.Bytes, first = seg.Bytes[1:], false
		}
		if slices.Contains(marked, i) {
			addMarked(body, seg, mark)
		} else {
			body.Add(seg)
		}
	}
	body.Add(llm.NewSegment(streamedEnd))
	return body.Encoded(), nil
}

// appendPrefix appends everything before the messages: the settings, then tools and
// system text, which the service caches first. Notes are a block after the marked one,
// so that everything before them stays cached.
func (m *Model) appendPrefix(dst []byte, p *projection, req *llm.Request, notes string) []byte {
	dst = append(dst, `{"model":`...)
	dst = wire.AppendQuoted(dst, req.Model)
	dst = append(dst, `,"max_tokens":`...)
	dst = strconv.AppendInt(dst, int64(m.cap(req)), 10)
	if req.Temperature != nil {
		dst = append(dst, `,"temperature":`...)
		dst = strconv.AppendFloat(dst, *req.Temperature, 'g', -1, 64)
	}
	schema, held := heldSchema(req)
	if held {
		dst = append(dst, `,"output_config":{"format":{"type":"json_schema","schema":`...)
		dst = append(append(dst, schema...), `}}`...)
	}
	dst = m.appendExtra(dst, req)
	system, mark := wire.System(req, held), m.mark(req.Cache)
	ofTools := mark
	if system != "" {
		ofTools = "" // the end of the system text is also the end of the tools
	}
	dst = appendTools(dst, p, req, ofTools)
	dst = appendSystem(dst, system, mark, notes)
	return append(dst, `,"messages":[`...)
}

func appendSystem(dst []byte, system, mark, notes string) []byte {
	begin := `,"system":[{"type":"text","text":`
	if system != "" {
		dst = wire.AppendQuoted(append(dst, begin...), system)
		dst, begin = append(append(dst, mark...), '}'), `,{"type":"text","text":`
	}
	if notes != "" {
		dst = append(wire.AppendQuoted(append(dst, begin...), notes), '}')
	}
	if system == "" && notes == "" {
		return dst
	}
	return append(dst, ']')
}

// cap returns the maximum length of an answer, which the API requires.
func (m *Model) cap(req *llm.Request) int { return cmp.Or(req.MaxTokens, m.maxTokens) }

// appendExtra appends the owner's additional members, except those that the request
// itself has.
func (m *Model) appendExtra(dst []byte, req *llm.Request) []byte {
	return wire.AppendExtra(dst, m.extra, func(name string) bool {
		switch name {
		case "model", "max_tokens", "tools", "system", "messages", "stream":
			return true
		case "temperature":
			return req.Temperature != nil
		case "output_config":
			_, held := heldSchema(req)
			return held
		}
		return false
	})
}

// appendTools appends the tools, with a mark on the last one.
func appendTools(dst []byte, p *projection, req *llm.Request, mark string) []byte {
	if len(req.Tools)+len(req.ProviderTools) == 0 {
		return dst
	}
	dst = append(dst, `,"tools":[`...)
	for i, name := range req.ProviderTools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendCompact(dst, providerTool(name), "{}")
	}
	for i, t := range req.Tools {
		if i+len(req.ProviderTools) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = wire.AppendQuoted(dst, p.names.Wire(t.Name))
		if t.Description != "" {
			dst = append(dst, `,"description":`...)
			dst = wire.AppendQuoted(dst, t.Description)
		}
		dst = append(dst, `,"input_schema":`...)
		dst = wire.AppendCompact(dst, t.Schema, `{"type":"object"}`)
		if i == len(req.Tools)-1 {
			dst = append(dst, mark...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// providerTools are the tools that the service runs itself, in the version that every
// current model accepts. Newer ones can be given as JSON.
var providerTools = map[string]string{
	"web_search":     `{"type":"web_search_20250305","name":"web_search"}`,
	"web_fetch":      `{"type":"web_fetch_20250910","name":"web_fetch"}`,
	"code_execution": `{"type":"code_execution_20250825","name":"code_execution"}`,
}

// providerTool returns the definition of a tool that the service runs, nil for any
// other.
func providerTool(name string) []byte {
	if whole, ok := wire.ProviderToolAsJSON(name); ok {
		return whole
	}
	return []byte(providerTools[name])
}

// withoutSchemas are the models older than structured outputs.
var withoutSchemas = []string{
	"claude-2", "claude-3", "claude-instant", "claude-sonnet-4-0", "claude-sonnet-4-2025", "claude-opus-4-0", "claude-opus-4-2025",
}

// heldSchema returns the request's schema in the form that the service enforces, and
// false if it cannot enforce it; the schema then belongs in the prompt.
func heldSchema(req *llm.Request) (json.RawMessage, bool) {
	if len(req.Schema) == 0 || req.SchemaInPrompt || !AnswersBySchema(req.Model) {
		return nil, false
	}
	return wire.ClosedSchema(req.Schema)
}

// AnswersBySchema reports whether the service enforces a schema for a model. Unknown
// models count as newer ones.
func AnswersBySchema(model string) bool {
	return !slices.ContainsFunc(withoutSchemas, func(family string) bool { return strings.HasPrefix(model, family) })
}

// The API's limits on images. In a request with more than manyImages, each image has
// the smaller size limit.
const (
	manyImages  = 20
	maxSide     = 8000
	maxManySide = 2000
	maxEncoded  = 10 << 20
)

// images returns the API's limits for a request with a number of images.
func images(count int) wire.Images {
	s := wire.Images{Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}, Side: maxSide, Encoded: maxEncoded}
	if count > manyImages {
		s.Side = maxManySide
	}
	return s
}

// Shows returns why an image cannot be shown to the model.
func (m *Model) Shows(f *llm.Media) error { return images(1).Refused(f) }

// countImages counts the images of a request.
func countImages(messages []*llm.Message) (n int) {
	for _, m := range messages {
		for f := range m.Parts.Media() {
			if strings.HasPrefix(f.MediaType, "image/") {
				n++
			}
		}
	}
	return n
}
