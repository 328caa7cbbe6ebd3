package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// ProviderToolAsJSON is a tool that the provider runs itself, where a request
// gives it as a JSON object, because it needs settings, and not by its name.
func ProviderToolAsJSON(tool string) (object json.RawMessage, ok bool) {
	object = json.RawMessage(strings.TrimSpace(tool))
	return object, len(object) > 0 && object[0] == '{' && Valid(object)
}

// UnknownProviderTool is the error for a tool that a provider does not run.
func UnknownProviderTool[T any](provider, name string, known map[string]T) error {
	return &llm.Error{
		Class: llm.ClassInvalid, Provider: provider,
		Message: fmt.Sprintf("there is no provider tool %q; known are %s, or give the tool as a JSON object",
			name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")),
	}
}
