package openai

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

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
