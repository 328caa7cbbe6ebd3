package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// closer rewrites a schema for a service that accepts only closed objects and few
// keywords.
type closer struct {
	root object
	// open reports that the schema cannot be closed without changing what it allows.
	open bool
	// seen counts schemas, because references may multiply them.
	seen int
}

// maxSchemas bounds the size of a schema with its references expanded.
const maxSchemas = 5000

// ClosedSchema returns a schema for Anthropic's structured outputs: every object
// forbids members that it does not name, and the description contains the bounds
// that the service does not enforce. What matches it and these bounds matches the
// original. It returns false if there is no such schema: an object with arbitrary
// members, a recursion, a tuple.
func ClosedSchema(schema json.RawMessage) (json.RawMessage, bool) {
	root, ok := members(schema)
	if !ok || root.text("type") != "object" {
		return nil, false
	}
	c := &closer{root: root}
	out := c.close(schema, nil, 0)
	return out, !c.open
}

// close rewrites one schema. refs are the references that led to it.
func (c *closer) close(schema json.RawMessage, refs []string, depth int) json.RawMessage {
	c.seen++
	o, ok := members(schema)
	if !ok || len(o) == 0 || depth > maxSchemaDepth || c.seen > maxSchemas {
		c.open = true
		return schema
	}
	var kept object
	var bounds []string
	for _, m := range o {
		switch m.name {
		case "$schema", "$id", "$comment", "examples", "additionalProperties", "description":
		case "type", "enum", "const", "required", "default", "title":
			kept = append(kept, m)
		case "$ref":
			c.follow(m, refs, depth)
			kept = append(kept, m)
		case "properties", "$defs", "definitions":
			kept = append(kept, member{m.name, c.each(m.value, refs, depth)})
		case "items":
			kept = append(kept, member{m.name, c.close(m.value, refs, depth+1)})
		case "anyOf", "oneOf", "allOf":
			kept = append(kept, member{strings.Replace(m.name, "oneOf", "anyOf", 1), c.list(m.value, refs, depth)})
		case "patternProperties", "prefixItems", "$dynamicRef", "unevaluatedProperties":
			c.open = true
		case "format":
			if formats[o.text("format")] {
				kept = append(kept, m)
				continue
			}
			bounds = append(bounds, m.String())
		case "minItems":
			if s := string(m.value); s == "0" || s == "1" {
				kept = append(kept, m)
				continue
			}
			bounds = append(bounds, m.String())
		default:
			bounds = append(bounds, m.String())
		}
	}
	c.object(o, &kept)
	describe(o, &kept, bounds)
	return kept.encode()
}

// formats are the formats that the service enforces.
var formats = map[string]bool{
	"date-time": true, "time": true, "date": true, "duration": true, "email": true, "hostname": true, "uri": true,
	"ipv4": true, "ipv6": true, "uuid": true,
}

// object closes the schema of an object.
func (c *closer) object(o object, kept *object) {
	if !o.has("properties") && !o.mayBeObject() {
		return
	}
	switch extra := string(o.get("additionalProperties")); {
	case extra != "" && extra != "false" && extra != "true", extra != "false" && !o.has("properties"):
		c.open = true
	}
	*kept = append(*kept, member{"additionalProperties", json.RawMessage("false")})
}

// describe keeps the description and adds the bounds that are not enforced.
func describe(o object, kept *object, bounds []string) {
	text := o.text("description")
	if len(bounds) > 0 {
		text = strings.TrimSpace(text + " (" + strings.Join(bounds, ", ") + ")")
	}
	if text != "" {
		*kept = append(*kept, member{"description", AppendQuoted(nil, text)})
	}
}

// follow rejects a recursive reference, and one that does not point to the schema's own
// definitions.
func (c *closer) follow(m member, refs []string, depth int) {
	var ref string
	_ = json.Unmarshal(m.value, &ref)
	keyword, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
	definitions, _ := members(c.root.get(keyword))
	target := definitions.get(name)
	if slices.Contains(refs, ref) || target == nil || c.open {
		c.open = true
		return
	}
	c.close(target, append(slices.Clip(refs), ref), depth+1)
}

func (c *closer) each(raw json.RawMessage, refs []string, depth int) json.RawMessage {
	o, ok := members(raw)
	if !ok {
		c.open = true
	}
	for i := range o {
		o[i].value = c.close(o[i].value, refs, depth+1)
	}
	return o.encode()
}

func (c *closer) list(raw json.RawMessage, refs []string, depth int) json.RawMessage {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		c.open = true
	}
	for i := range list {
		list[i] = c.close(list[i], refs, depth+1)
	}
	return slices.Concat([]byte("["), bytes.Join(rawSlices(list), []byte(",")), []byte("]"))
}

func rawSlices(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
