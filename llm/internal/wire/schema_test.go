package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestStrictSchemasAreRecognized(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                        true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                  true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                   false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                               false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                    false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                  false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:         false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"null"}}}`: true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"not":{}}]}},"required":["a"],"additionalProperties":false}`:             false,
		`{"anyOf":[{"type":"object"}],"type":"object","properties":{},"additionalProperties":false}`:                                            false,
		`{"type":"object","properties":{"a":{"type":["null","object"]}},"required":["a"],"additionalProperties":false}`:                         false,
		`{"type":"array"}`: false,
		`true`:             false,
		`{`:                false,
	} {
		if got := wire.StrictSchema(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %t", schema, got)
		}
	}
}

func TestSchemasAreClosedOrLeft(t *testing.T) {
	const none = ""
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"b":{"type":"string"},"a":{"const":1}}}`:                                      `{"type":"object","properties":{"b":{"type":"string"},"a":{"const":1}},"additionalProperties":false}`,
		`{"type":"object","description":"D","properties":{},"maxProperties":3}`:                                       `{"type":"object","properties":{},"additionalProperties":false,"description":"D (maxProperties: 3)"}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":1},"minItems":2}}}`:   `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","description":"(minimum: 1)"},"description":"(minItems: 2)"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"string","format":"uuid"},"b":{"type":"string","format":"iri"}}}`: `{"type":"object","properties":{"a":{"type":"string","format":"uuid"},"b":{"type":"string","description":"(format: \"iri\")"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"null"},{"type":"string"}]}}}`:                          `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"string"}]}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string","maxLength":2}}}`:     `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string","description":"(maxLength: 2)"}},"additionalProperties":false}`,
		`{"type":"object"}`: none,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                                               none,
		`{"type":"object","properties":{"a":{"type":["null","object"]}}}`:                                          none,
		`{"type":"object","properties":{"a":{}}}`:                                                                  none,
		`{"type":"object","properties":{"a":true}}`:                                                                none,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[{"$ref":"#/$defs/b"}]}}}`: none,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/b"}}}`:                                    none,
		`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]}}}`:                  none,
		`{"type":"object","properties":{},"patternProperties":{"^x":{"type":"string"}}}`:                           none,
		`[]`: none,
	} {
		got, ok := wire.ClosedSchema(json.RawMessage(schema))
		if ok != (want != none) || ok && string(got) != want {
			t.Errorf("%s:\n got %s %t\nwant %s", schema, got, ok, want)
		}
	}
}

// FuzzClosedSchema looks for a schema that is rewritten to something that is
// none, or without end.
func FuzzClosedSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"array","items":{"oneOf":[true,{}]}}}}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"minimum":1,"format":7,"description":{}}},"additionalProperties":true}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if out, ok := wire.ClosedSchema(schema); ok && !json.Valid(out) {
			t.Errorf("%s becomes %s", schema, out)
		}
		_ = wire.StrictSchema(schema)
	})
}
