package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// withoutSchemas are the models that came before structured outputs.
var withoutSchemas = []string{
	"claude-2", "claude-3", "claude-instant", "claude-sonnet-4-0", "claude-sonnet-4-2025", "claude-opus-4-0", "claude-opus-4-2025",
}

// heldSchema is the request's schema in the form that the service holds the
// model to, and false where it cannot: it must then be said in words.
func heldSchema(req *llm.Request) (json.RawMessage, bool) {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return nil, false
	}
	for _, family := range withoutSchemas {
		if strings.HasPrefix(req.Model, family) {
			return nil, false
		}
	}
	return wire.ClosedSchema(req.Schema)
}
