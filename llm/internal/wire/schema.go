package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// maxSchemaDepth bounds how deep a schema is looked into.
const maxSchemaDepth = 64

// System is the system text of a request. Its schema follows in words, unless
// the service holds the model to it; the answer is validated all the same.
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

// strictKeywords are what OpenAI's strict mode takes, which compatible services
// share. Every object must list all its members as required and forbid others.
var strictKeywords = []string{
	"$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions", "description", "enum",
	"exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum",
	"multipleOf", "pattern", "properties", "required", "title", "type",
}

// StrictSchema reports whether a schema is of the kind that OpenAI's strict mode
// takes. Asked to be strict about any other, the service refuses the request.
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

// mayBeObject reports whether the type of a schema is, or lists, that of an object.
func (o object) mayBeObject() bool {
	var types []string
	_ = json.Unmarshal(o.get("type"), &types)
	return o.text("type") == "object" || slices.Contains(types, "object")
}

// subschemas are the schemas that a keyword holds.
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
