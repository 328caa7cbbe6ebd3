package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// maxSchemaDepth bounds the depth to which a schema is examined.
const maxSchemaDepth = 64

// System returns the system text of a request. The schema is appended in words unless
// the service enforces it; the answer is validated in any case.
func System(req *llm.Request, held bool) string {
	if len(req.Schema) == 0 || held {
		return req.System
	}
	var b strings.Builder
	b.WriteString(req.System)
	if req.System != "" {
		b.WriteString("\n\n")
	}
	b.WriteString("Give your final answer as one JSON value that matches this JSON schema, " +
		"and nothing else: no other words, no code fence.\n")
	b.Write(AppendCompact(nil, req.Schema, "{}"))
	return b.String()
}

// strictKeywords are the keywords that OpenAI's strict mode supports, also on
// compatible services. Every object must list all its members as required and forbid
// others.
var strictKeywords = []string{
	"$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions", "description", "enum",
	"exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum",
	"multipleOf", "pattern", "properties", "required", "title", "type",
}

// StrictSchema reports whether OpenAI's strict mode supports a schema. The service
// rejects a strict request with any other schema.
func StrictSchema(schema json.RawMessage) bool {
	root, ok := members(schema)
	return ok && root.text("type") == "object" && !root.has("anyOf") && strict(schema, 0)
}

func strict(schema json.RawMessage, depth int) bool {
	o, ok := members(schema)
	if !ok || depth > maxSchemaDepth {
		return false
	}
	for _, m := range o {
		if !slices.Contains(strictKeywords, m.name) {
			return false
		}
		for _, sub := range subschemas(m) {
			if !strict(sub, depth+1) {
				return false
			}
		}
	}
	if !o.has("properties") && !o.mayBeObject() {
		return true
	}
	properties, _ := members(o.get("properties"))
	var required []string
	_ = json.Unmarshal(o.get("required"), &required)
	return string(o.get("additionalProperties")) == "false" &&
		!slices.ContainsFunc(properties, func(p member) bool { return !slices.Contains(required, p.name) })
}

// mayBeObject reports whether the type of a schema is, or includes, an object.
func (o object) mayBeObject() bool {
	var types []string
	_ = json.Unmarshal(o.get("type"), &types)
	return o.text("type") == "object" || slices.Contains(types, "object")
}

// subschemas returns the schemas in the value of a keyword.
func subschemas(m member) []json.RawMessage {
	switch m.name {
	case "items":
		return []json.RawMessage{m.value}
	case "anyOf", "allOf", "oneOf":
		var list []json.RawMessage
		_ = json.Unmarshal(m.value, &list)
		return list
	case "properties", "$defs", "definitions":
		o, _ := members(m.value)
		var list []json.RawMessage
		for _, p := range o {
			list = append(list, p.value)
		}
		return list
	}
	return nil
}

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
