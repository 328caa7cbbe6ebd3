package gemini

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// holdsSchema reports whether the request has a schema that the service enforces.
// Models before gemini-3 reject a schema together with tools.
func holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return len(req.Tools)+len(req.ProviderTools) == 0 || strings.HasPrefix(req.Model, "gemini-3")
}
