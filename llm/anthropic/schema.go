package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

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
