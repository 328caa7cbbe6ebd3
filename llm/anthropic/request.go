package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the longest tool name that the API takes.
const maxToolName = 128

// The ends of a body. Which one is sent is decided by the call, so that the
// same encoded request serves both.
var (
	streamedEnd = []byte(`],"stream":true}`)
	wholeEnd    = []byte(`]}`)
)

// projection is what the encoding of a request's messages and the decoding of
// its answer depend on, besides the messages.
type projection struct {
	names     *wire.Names
	maxTokens int
	// family decides which reasoning is echoed.
	family string
	// wire names the encoding of a message for the memo.
	wire string
}

// Encode returns the bytes that the request becomes. The digest is that of the
// streamed form; asking for a whole answer leaves out the stream member alone.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	p, err := m.project(req)
	if err != nil {
		return nil, err
	}
	return m.encode(p, req)
}

func (m *Model) project(req *llm.Request) (*projection, error) {
	for _, name := range req.ProviderTools {
		if _, ok := providerTool(name); !ok {
			return nil, &llm.Error{
				Class: llm.ClassInvalid, Provider: m.provider,
				Message: fmt.Sprintf("there is no provider tool %q; known are %s, or give the tool as a JSON object",
					name, strings.Join(slices.Sorted(maps.Keys(providerTools)), ", ")),
			}
		}
	}
	p := &projection{
		names: m.names.For(req.Tools, maxToolName), family: modelFamily(req.Model), maxTokens: cmp.Or(req.MaxTokens, m.maxTokens),
	}
	p.wire = m.provider + "/" + p.family + p.names.Clashes()
	return p, nil
}

// encode joins the prefix, the messages and the end. Its cost is that of the
// messages that are new.
func (m *Model) encode(p *projection, req *llm.Request) (*llm.Encoded, error) {
	messages := make([]llm.Segment, len(req.Messages))
	encodeMessage := func(msg *llm.Message) []byte { return p.appendMessage(nil, m.provider, msg) }
	for i, msg := range req.Messages {
		messages[i] = req.Memo.Message(p.wire, msg, encodeMessage)
	}
	if err := lint.Request(conform.Anthropic, m.provider, p.wire, req, messages); err != nil {
		return nil, err
	}
	segments := make([]llm.Segment, 0, len(messages)+maxMarks+2)
	notes := req.SystemNotes()
	segments = append(segments, req.Memo.RequestPrefix(p.wire, m.variant+notes, req, func() []byte { return m.appendPrefix(nil, p, req, notes) }))
	mark, marked := m.mark(req.Cache), m.marks(req, messages)
	first := true
	for i, seg := range messages {
		if len(seg.Bytes) == 0 {
			continue
		}
		if first {
			// A message begins with the comma that parts it from the one before.
			seg.Bytes, first = seg.Bytes[1:], false
		}
		if slices.Contains(marked, i) {
			segments = appendMarked(segments, seg, mark)
		} else {
			segments = append(segments, seg)
		}
	}
	segments = append(segments, llm.NewSegment(streamedEnd))
	return llm.Assemble(segments...), nil
}

// appendPrefix writes everything up to the messages: the settings, then tools
// and system text, which is what the service caches first. Notes are a block
// behind the marked one, so that what stands before them stays cached.
func (m *Model) appendPrefix(dst []byte, p *projection, req *llm.Request, notes string) []byte {
	dst = append(dst, `{"model":`...)
	dst = wire.AppendQuoted(dst, req.Model)
	dst = append(dst, `,"max_tokens":`...)
	dst = strconv.AppendInt(dst, int64(p.maxTokens), 10)
	if req.Temperature != nil {
		dst = append(dst, `,"temperature":`...)
		dst = strconv.AppendFloat(dst, *req.Temperature, 'g', -1, 64)
	}
	system := req.System
	if schema, held := heldSchema(req); held {
		dst = append(dst, `,"output_config":{"format":{"type":"json_schema","schema":`...)
		dst = append(append(dst, schema...), `}}`...)
	} else if len(req.Schema) > 0 {
		system = wire.SystemWithSchema(system, req.Schema)
	}
	dst = m.appendExtra(dst, req)
	dst = m.appendTools(dst, p, req)
	if system != "" {
		dst = append(dst, `,"system":[{"type":"text","text":`...)
		dst = wire.AppendQuoted(dst, system)
		dst = append(dst, m.mark(req.Cache)...)
		dst = append(dst, '}')
	}
	switch {
	case notes != "" && system != "":
		dst = append(dst, ',')
	case notes != "":
		dst = append(dst, `,"system":[`...)
	}
	if notes != "" {
		dst = append(wire.AppendQuoted(append(dst, `{"type":"text","text":`...), notes), '}')
	}
	if system != "" || notes != "" {
		dst = append(dst, ']')
	}
	return append(dst, `,"messages":[`...)
}

// appendExtra adds the owner's further members, but for those that the request
// has itself.
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

func (m *Model) appendTools(dst []byte, p *projection, req *llm.Request) []byte {
	if len(req.Tools)+len(req.ProviderTools) == 0 {
		return dst
	}
	dst = append(dst, `,"tools":[`...)
	for i, name := range req.ProviderTools {
		if i > 0 {
			dst = append(dst, ',')
		}
		def, _ := providerTool(name)
		dst = wire.AppendCompact(dst, json.RawMessage(def), "{}")
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
		if req.System == "" && i == len(req.Tools)-1 {
			dst = append(dst, m.mark(req.Cache)...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// providerTools are the tools that the service runs itself, in the version that
// every current model takes. Newer ones can be given as JSON.
var providerTools = map[string]string{
	"web_search":     `{"type":"web_search_20250305","name":"web_search"}`,
	"web_fetch":      `{"type":"web_fetch_20250910","name":"web_fetch"}`,
	"code_execution": `{"type":"code_execution_20250825","name":"code_execution"}`,
}

func providerTool(name string) (string, bool) {
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		return name, wire.Valid([]byte(name))
	}
	def, ok := providerTools[name]
	return def, ok
}
