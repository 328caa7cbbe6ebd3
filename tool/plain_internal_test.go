package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// What a plain schema lets through, the validator lets through.
func TestAPlainSchemaKnowsWhatFits(t *testing.T) {
	for _, c := range []struct {
		schema, value string
		plain, fits   bool
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"a":"x"}`, true, true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"a":1}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"b":1}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"not":{}}}`, `{"b":1}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"b":1}`, true, true},
		{`{"type":"object","properties":{"a":{"type":["null","array"],"items":{"type":"integer"}}}}`, `{"a":[1,2]}`, true, true},
		{`{"type":"object","properties":{"a":{"type":["null","array"],"items":{"type":"integer"}}}}`, `{"a":null}`, true, true},
		{`{"type":"object","properties":{"a":{"type":["null","array"],"items":{"type":"integer"}}}}`, `{"a":[1.5]}`, true, false},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":1.0}`, true, false}, // fits, as the validator knows
		{`{"type":"object","properties":{"a":{"type":"string","minLength":3}}}`, `{"a":"x"}`, false, false},
		{`{"type":"object","anyOf":[{"required":["a"]}]}`, `{}`, false, false},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, false, false},
		{`true`, `{}`, false, false},
	} {
		doc, err := parse([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		v, err := parse([]byte(c.value))
		if err != nil {
			t.Fatal(err)
		}
		p := plainOf(doc)
		if (p != nil) != c.plain || p.fits(v) != c.fits {
			t.Errorf("%s: plain %t, %s fits %t", c.schema, p != nil, c.value, p.fits(v))
		}
	}
}

func TestAPlainSchemaAgreesWithTheOfficialSuite(t *testing.T) {
	files, _ := filepath.Glob("../../shared/fixtures/json-schema-test-suite/tests/draft2020-12/*.json")
	if len(files) == 0 {
		t.Skip("the official suite is not here")
	}
	fitting := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Schema json.RawMessage
			Tests  []struct {
				Data  json.RawMessage
				Valid bool
			}
		}
		if err := json.Unmarshal(text, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			doc, err := parse(dropMarker(t, g.Schema))
			if err != nil {
				continue
			}
			for _, c := range g.Tests {
				v, err := parse(c.Data)
				if err != nil || !plainOf(doc).fits(v) {
					continue
				}
				fitting++
				if !c.Valid {
					t.Errorf("%s: %s fits %s", name, c.Data, g.Schema)
				}
			}
		}
	}
	if fitting == 0 {
		t.Error("no case of the suite is plain")
	}
}

// dropMarker takes $schema, which each of the suite's schemas has, out of one.
func dropMarker(t *testing.T, schema json.RawMessage) json.RawMessage {
	t.Helper()
	var o map[string]json.RawMessage
	if json.Unmarshal(schema, &o) != nil {
		return schema
	}
	delete(o, "$schema")
	out, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func FuzzPlain(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`)
	f.Add(`{"type":["null","array"],"items":{"type":"number"}}`, `[1,2.5]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := CompileSchema(json.RawMessage(schema))
		if err != nil || s.plain == nil {
			return
		}
		v, err := parse([]byte(value))
		if err != nil || !s.plain.fits(v) {
			return
		}
		s.plain = nil
		if err := s.check(v, len(value)); err != nil {
			t.Errorf("%s fits %s: %v", value, schema, err)
		}
	})
}
