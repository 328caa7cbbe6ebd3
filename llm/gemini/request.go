package gemini

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/conform"
	"github.com/pawlrun/pawl/llm/internal/lint"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// maxToolName is the API's limit on the length of function names.
const maxToolName = 64

// Encode returns the request: a prefix that stays the same for a run, one piece for
// each message, and the end. Its cost depends only on what is new.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) {
	for _, name := range req.ProviderTools {
		if len(providerTool(name)) == 0 {
			return nil, wire.UnknownProviderTool(provider, name, providerTools)
		}
	}
	names := m.names.For(req.Tools, maxToolName)
	origin := provider + "/" + req.Model
	key := "gemini/" + origin + names.Clashes()
	signs := strings.HasPrefix(req.Model, "gemini-3")
	body := llm.NewAssembly(len(req.Messages) + 2)
	notes := req.SystemNotes()
	body.Add(req.Memo.RequestPrefix(key, notes, req, func() []byte { return appendPrefix(nil, req, names, notes) }))
	messages := req.Memo.Messages(key, req.Messages, func(dst []byte, msg *llm.Message) []byte {
		e := encoder{names: names, own: msg.Origin == origin, signs: signs}
		return e.appendMessage(dst, msg)
	})
	if err := lint.Request(conform.Gemini, provider, key, req, messages); err != nil {
		return nil, err
	}
	wire.AddParted(body, messages, true)
	body.Add(llm.NewSegment([]byte("]}")))
	return body.Encoded(), nil
}

// appendPrefix appends everything before the contents. Notes are a separate part after
// the system text.
func appendPrefix(b []byte, req *llm.Request, names *wire.Names, notes string) []byte {
	b = append(b, '{')
	held := holdsSchema(req)
	b = appendSystem(b, wire.System(req, held), notes)
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
		b = wire.AppendCompact(b, providerTool(name), "{}")
	}
	return append(b, "],"...)
}

// providerTools are the tools that Google runs itself and that need no settings, by
// their names in either spelling and by the names of other services for the same tools.
// Others can be given as JSON.
var providerTools = map[string]string{
	"web_search":     `{"googleSearch":{}}`,
	"google_search":  `{"googleSearch":{}}`,
	"googleSearch":   `{"googleSearch":{}}`,
	"code_execution": `{"codeExecution":{}}`,
	"codeExecution":  `{"codeExecution":{}}`,
	"web_fetch":      `{"urlContext":{}}`,
	"url_context":    `{"urlContext":{}}`,
	"urlContext":     `{"urlContext":{}}`,
	"google_maps":    `{"googleMaps":{}}`,
	"googleMaps":     `{"googleMaps":{}}`,
}

// providerTool returns the definition of a tool that Google runs, nil for any other.
func providerTool(name string) []byte {
	if whole, ok := wire.ProviderToolAsJSON(name); ok {
		return whole
	}
	return []byte(providerTools[name])
}

// CacheRules returns Google's cache rules for a model: from 2.5 on it caches
// automatically, without a guarantee and without a way to turn it off. The lifetime is
// not documented, so a short one is assumed.
func (m *Model) CacheRules(model string, _ llm.Caching) (llm.CacheRules, bool) {
	rules := llm.CacheRules{Minimum: 4096, Lifetime: 3 * time.Minute, BestEffort: true}
	switch {
	case strings.HasPrefix(model, "gemini-2.5"):
		rules.Minimum = 2048
	case strings.HasPrefix(model, "gemini-1"), strings.HasPrefix(model, "gemini-2"), !strings.HasPrefix(model, "gemini-"):
		return llm.CacheRules{}, false
	}
	return rules, true
}

var _ llm.Cacher = (*Model)(nil)

// holdsSchema reports whether the request has a schema that the service enforces.
// Models before gemini-3 reject a schema together with tools.
func holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return len(req.Tools)+len(req.ProviderTools) == 0 || strings.HasPrefix(req.Model, "gemini-3")
}
