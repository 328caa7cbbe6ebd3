package openai

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// holdsSchema reports whether the request asks for an answer by schema, and
// that the model can be held to it: OpenAI's own can since gpt-4o.
func holdsSchema(req *llm.Request) bool {
	model := strings.TrimPrefix(strings.ToLower(req.Model), "ft:")
	return len(req.Schema) > 0 && !req.SchemaInPrompt && !strings.HasPrefix(model, "gpt-3") && model != "gpt-4" &&
		!strings.HasPrefix(model, "gpt-4-") && !strings.HasPrefix(model, "chatgpt")
}

// appendParameters appends a tool's schema. The service refuses one that does
// not say that it is an object with properties, even where there are none.
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
