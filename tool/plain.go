package tool

import (
	"encoding/json"
	"slices"
	"strings"
)

// plain is the part of JSON Schema that most tools use: types, properties, and which
// are required. It recognizes matching values without a validator, which would be the
// most expensive part of a call; all other values go to the validator.
type plain struct {
	kinds    []string
	members  map[string]*plain
	required []string
	// open reports that an object may have members that are not named.
	open  bool
	items *plain
}

// plainOf returns the plain form of a schema, or nil if it has other keywords.
func plainOf(schema any) *plain {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	p := &plain{open: true}
	for keyword, value := range s {
		if !p.take(keyword, value) {
			return nil
		}
	}
	if p.kinds == nil {
		return nil
	}
	return p
}

// take applies one keyword, and reports whether it is known.
func (p *plain) take(keyword string, value any) (known bool) {
	switch keyword {
	case "description", "title":
		return true
	case "type":
		return p.takeKinds(value)
	case "additionalProperties":
		if nothing, object := value.(map[string]any); object && len(nothing) == 1 { // {"not": {}}
			nothing, known = nothing["not"].(map[string]any)
			p.open, known = false, known && len(nothing) == 0
			return known
		}
		p.open, known = value.(bool)
	case "items":
		p.items = plainOf(value)
		return p.items != nil
	case "required":
		names, list := value.([]any)
		for _, n := range names {
			name, _ := n.(string)
			p.required = append(p.required, name)
		}
		return list
	case "properties":
		members, object := value.(map[string]any)
		p.members = make(map[string]*plain, len(members))
		for name, m := range members {
			if p.members[name] = plainOf(m); p.members[name] == nil {
				return false
			}
		}
		return object
	}
	return known
}

func (p *plain) takeKinds(value any) bool {
	names, list := value.([]any)
	if !list {
		names = []any{value}
	}
	for _, n := range names {
		name, text := n.(string)
		if !text {
			return false
		}
		p.kinds = append(p.kinds, name)
	}
	return len(names) > 0
}

func (p *plain) is(kind string) bool { return slices.Contains(p.kinds, kind) }

// fits reports whether a value of [parse] certainly matches. A nil plain matches none.
func (p *plain) fits(v any) bool {
	if p == nil {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return p.is("object") && p.fitsObject(v)
	case []any:
		if !p.is("array") {
			return false
		}
		for _, e := range v {
			if p.items != nil && !p.items.fits(e) {
				return false
			}
		}
		return true
	case string:
		return p.is("string")
	case bool:
		return p.is("boolean")
	case json.Number:
		return p.is("number") || p.is("integer") && !strings.ContainsAny(string(v), ".eE")
	}
	return v == nil && p.is("null")
}

func (p *plain) fitsObject(v map[string]any) bool {
	for _, name := range p.required {
		if _, there := v[name]; !there {
			return false
		}
	}
	for name, e := range v {
		if m, named := p.members[name]; named && !m.fits(e) || !named && !p.open {
			return false
		}
	}
	return true
}
