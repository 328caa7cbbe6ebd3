package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the longest function name that the API takes.
const maxToolName = 64

// unsigned stands for the signature of a call that another provider's model
// made. It is Google's documented way out, for the first call of a step only.
const unsigned = "skip_thought_signature_validator"

// encode renders a request: what does not change within a run first, then one
// segment per message.
func (m *Model) encode(req *llm.Request) (*llm.Encoded, error) {
	names := m.names.For(req.Tools, maxToolName)
	origin := provider + "/" + req.Model
	key := "gemini/" + origin + names.Clashes()
	signs := strings.HasPrefix(req.Model, "gemini-3")
	segments := make([]llm.Segment, 0, len(req.Messages)+2)
	notes := req.SystemNotes()
	segments = append(segments, req.Memo.RequestPrefix(key, notes, req, func() []byte { return appendPrefix(nil, req, names, notes) }))
	encode := func(msg *llm.Message) []byte {
		e := encoder{names: names, own: msg.Origin == origin, signs: signs}
		return e.appendMessage(nil, msg)
	}
	for _, msg := range req.Messages {
		segments = append(segments, req.Memo.Message(key, msg, encode))
	}
	if err := lint.Request(conform.Gemini, provider, key, req, segments[1:]); err != nil {
		return nil, err
	}
	segments = wire.AppendParted(segments[:1], segments[1:], true)
	return llm.Assemble(append(segments, llm.NewSegment([]byte("]}")))...), nil
}

// appendPrefix writes everything up to the contents. Notes are a part of their
// own behind the system text.
func appendPrefix(b []byte, req *llm.Request, names *wire.Names, notes string) []byte {
	b = append(b, '{')
	system, held := req.System, holdsSchema(req)
	if len(req.Schema) > 0 && !held {
		system = wire.SystemWithSchema(system, req.Schema)
	}
	b = appendSystem(b, system, notes)
	b = appendTools(b, req, names)
	b = append(b, `"generationConfig":{`...)
	comma := false
	field := func(name string) {
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(append(append(b, '"'), name...), `":`...)
	}
	if req.MaxTokens > 0 {
		field("maxOutputTokens")
		b = strconv.AppendInt(b, int64(req.MaxTokens), 10)
	}
	if req.Temperature != nil {
		field("temperature")
		b = strconv.AppendFloat(b, *req.Temperature, 'g', -1, 64)
	}
	if held {
		field("responseMimeType")
		b = append(b, `"application/json"`...)
		field("responseJsonSchema")
		b = wire.AppendCompact(b, req.Schema, "{}")
	}
	return append(b, `},"contents":[`...)
}

func appendSystem(b []byte, texts ...string) []byte {
	begin := `"systemInstruction":{"parts":[{"text":`
	open := false
	for _, text := range texts {
		if text == "" {
			continue
		}
		if open {
			begin = `,{"text":`
		}
		b, open = append(wire.AppendQuoted(append(b, begin...), text), '}'), true
	}
	if open {
		b = append(b, "]},"...)
	}
	return b
}

// holdsSchema says that the request asks for an answer by schema, and that the
// service holds the model to it. Before gemini-3 it refuses a schema beside
// tools.
func holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return len(req.Tools)+len(req.ProviderTools) == 0 || strings.HasPrefix(req.Model, "gemini-3")
}

func appendTools(b []byte, req *llm.Request, names *wire.Names) []byte {
	if len(req.Tools)+len(req.ProviderTools) == 0 {
		return b
	}
	b = append(b, `"tools":[`...)
	if len(req.Tools) > 0 {
		b = append(b, `{"functionDeclarations":[`...)
		for i, t := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = wire.AppendQuoted(append(b, `{"name":`...), names.Wire(t.Name))
			b = wire.AppendQuoted(append(b, `,"description":`...), t.Description)
			b = append(wire.AppendCompact(append(b, `,"parametersJsonSchema":`...), t.Schema, "{}"), '}')
		}
		b = append(b, "]}"...)
	}
	for i, name := range req.ProviderTools {
		if i > 0 || len(req.Tools) > 0 {
			b = append(b, ',')
		}
		b = appendHosted(b, name)
	}
	return append(b, "],"...)
}

// appendHosted appends a tool that Google runs itself: by its name, or whole
// where it is given as a JSON object because it needs settings.
func appendHosted(b []byte, name string) []byte {
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		return wire.AppendCompact(b, json.RawMessage(name), "{}")
	}
	return append(wire.AppendQuoted(append(b, '{'), hosted(name)), ":{}}"...)
}

// hosted is Google's name of a tool that it runs itself.
func hosted(name string) string {
	switch name {
	case "web_search":
		return "googleSearch"
	case "code_execution":
		return "codeExecution"
	case "web_fetch":
		return "urlContext"
	}
	return name
}

// encoder renders the messages of one request.
type encoder struct {
	names *wire.Names
	// own says that the message came from this very model, so that its
	// signatures hold; signs that the model insists on signatures.
	own, signs bool
	open       bool
}

func (e *encoder) appendMessage(b []byte, msg *llm.Message) []byte {
	role := "user"
	switch msg.Role {
	case llm.RoleAssistant:
		role = "model"
	case llm.RoleSystem:
		return b // it stands behind the system text
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
		signature = signatureOf(t.Raw)
	}
	if t.Text == "" && signature == "" {
		return b
	}
	b = wire.AppendQuoted(append(e.comma(b), `{"text":`...), t.Text)
	return append(appendSignature(b, signature), '}')
}

func signatureOf(raw []byte) string {
	for m := wire.ScanObject(raw); len(raw) > 0 && m.Next(); {
		if string(m.Key()) == "thoughtSignature" {
			return wire.Text(m.Value())
		}
	}
	return ""
}

func appendSignature(b []byte, signature string) []byte {
	if signature == "" {
		return b
	}
	return wire.AppendQuoted(append(b, `,"thoughtSignature":`...), signature)
}

// appendThought sends a signed thought back. An unsigned one is a summary for
// people, which the model does not need.
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
	b = append(wire.AppendCompact(append(b, `,"args":`...), c.Args, "{}"), '}')
	signature := c.Signature
	if !e.own {
		signature = ""
		if first && e.signs {
			signature = unsigned
		}
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

func appendMedia(b []byte, f llm.Media) []byte {
	if f.URL != "" {
		b = wire.AppendQuoted(append(b, `{"fileData":{"mimeType":`...), f.MediaType)
		return append(wire.AppendQuoted(append(b, `,"fileUri":`...), f.URL), "}}"...)
	}
	b = wire.AppendQuoted(append(b, `{"inlineData":{"mimeType":`...), f.MediaType)
	return append(wire.AppendQuoted(append(b, `,"data":`...), base64.StdEncoding.EncodeToString(f.Data)), "}}"...)
}
