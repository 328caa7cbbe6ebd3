package gemini

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// holdsSchema reports whether the request asks for an answer by schema, and
// that the service holds the model to it. Before gemini-3 it refuses a schema
// beside tools.
func holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return len(req.Tools)+len(req.ProviderTools) == 0 || strings.HasPrefix(req.Model, "gemini-3")
}
