package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// ProviderToolAsJSON returns a tool that the provider runs itself and that a request
// defines as a JSON object, because it needs settings, instead of by its name.
func ProviderToolAsJSON(tool string) (object json.RawMessage, ok bool) {
	object = json.RawMessage(strings.TrimSpace(tool))
	return object, len(object) > 0 && object[0] == '{' && Valid(object)
}

// UnknownProviderTool returns the error for a tool that a provider does not run.
func UnknownProviderTool[T any](provider, name string, known map[string]T) error {
	return &llm.Error{
		Class: llm.ClassInvalid, Provider: provider,
		Message: fmt.Sprintf("there is no provider tool %q; known are %s, or give the tool as a JSON object",
			name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")),
	}
}
