package tool_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/tool"
)

func compile(t *testing.T, schema string) *tool.Schema {
	t.Helper()
	s, err := tool.CompileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestViolationsAreWordsThatAModelCanActOn(t *testing.T) {
	s := compile(t, `{
		"type": "object",
		"properties": {
			"path": {"type": "string", "minLength": 1},
			"limit": {"type": "integer", "maximum": 10},
			"mode": {"enum": ["fast", "slow", "<auto>", null]},
			"form": {"const": {"sides": [1, 2]}},
			"when": {"pattern": "^[0-9]+$", "type": "string"},
			"place": {"$ref": "#/$defs/place"},
			"target": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
		},
		"required": ["path"],
		"additionalProperties": false,
		"$defs": {"place": {
			"type": "object", "properties": {"lat/lon": {"type": "number"}}, "additionalProperties": false
		}}
	}`)
	for _, c := range []struct{ args, want string }{
		{`{"path":"a"}`, ""},
		{`{"path":"a","limit":3.0}`, ""},
		{`{}`, `"path" is missing`},
		{`[]`, `must be object, not array`},
		{`{"path":3}`, `/path: must be string, not number`},
		{`{"path":""}`, `/path: must have at least 1 characters, not 0`},
		{`{"path":"a","limit":3.5}`, `/limit: must be integer, not number`},
		{`{"path":"a","limit":11}`, `/limit: maximum: got 11, want 10`},
		{`{"path":"a","mode":"medium"}`, `/mode: value must be one of "fast", "slow", "<auto>", null`},
		{`{"path":"a","form":{"sides":[1]}}`, `/form: value must be {"sides":[1,2]}`},
		{`{"path":"a","when":"now"}`, `/when: "now" does not match the pattern ^[0-9]+$`},
		{`{"path":"a","offset":1}`, `"offset" is not known; known: "form", "limit", "mode", "path", "place", "target", "when"`},
		{`{"path":"a","place":{"x":1}}`, `/place: "x" is not known; known: "lat/lon"`},
		{`{"path":"a","place":{"lat/lon":"1"}}`, `/place/lat~1lon: must be number, not string`},
		{`{"path":"a","target":3}`, `/target: fits none of the allowed forms: /target: must be array, not number, or /target: must be string, not number`},
		{`{"limit":"x"}`, `"path" is missing; /limit: must be integer, not string`},
		{`{"path":"a","path":"b"}`, `not valid JSON: the member "path" occurs twice in one object`},
		{`{"path":"a"} {}`, `not valid JSON: invalid character '{' after top-level value`},
		{`{"path":"a"`, `not valid JSON: unexpected end of JSON input`},
		{`{"path":"a","limit":1e999999999}`, `not valid JSON: the number 1e999999999 is out of range`},
		{`{"path":"a","limit":` + strings.Repeat("1", 10_001) + `}`, `not valid JSON: the number ` + strings.Repeat("1", 50) + `… has 10001 characters; at most 10000 are possible`},
	} {
		got := ""
		if err := s.Validate(json.RawMessage(c.args)); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.args, diff)
		}
	}
}

func TestAThousandViolationsAreSaidInAFewLines(t *testing.T) {
	s := compile(t, `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`)
	err := s.Validate(json.RawMessage(`{"a":[` + strings.Repeat("1,", 999) + `1]}`))
	if err == nil {
		t.Fatal("numbers were taken for strings")
	}
	if text := err.Error(); len(text) > 2000 || !strings.Contains(text, "and 990 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	long := strings.Repeat("x", 1<<20)
	err = compile(t, `{"type":"object","additionalProperties":false}`).Validate(json.RawMessage(`{"` + long + `":1}`))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("an unknown member of a megabyte is quoted in %d bytes", len(err.Error()))
	}
}

// A million mistakes were a gigabyte of words, of which ten lines were told.
func TestWrongArgumentsCostNoMoreMemoryThanTheyAreLong(t *testing.T) {
	many := `[` + strings.Repeat("0,", 50_000) + `0]`
	for schema, value := range map[string]string{
		`{"type":"string"}`: many,
		`{"anyOf":[{"type":"string"},{"type":"object"},{"type":"boolean"}]}`:         many,
		`{"anyOf":[{"items":{"type":"string"}},{"items":{"type":"object"}}]}`:        `[` + many + `]`,
		`{"type":"integer","minimum":0,"maximum":5}`:                                 `[` + strings.Repeat("9", 100_000) + `]`,
		`{"type":"array","items":{"enum":["one","of","many","words"]},"minItems":1}`: `[` + many + `]`,
	} {
		s := compile(t, `{"type":"object","properties":{"l":{"type":"array","items":`+schema+`}}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Validate(json.RawMessage(`{"l":` + value + `}`))
		runtime.ReadMemStats(&after)
		if err == nil || len(err.Error()) > 7000 {
			t.Errorf("%s: %v", schema, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 120 {
			t.Errorf("%s: %d MiB were taken for %d KiB", schema, used, len(value)>>10)
		}
	}
}

func TestASchemaMustNotMakeTheLoopFetchAnything(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","$ref":"https://example.com/other.json"}`,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		`{"type":"object","$schema":"https://example.com/my-own-draft"}`,
	} {
		_, err := tool.CompileSchema(json.RawMessage(schema))
		if err == nil || !strings.Contains(err.Error(), "references to other documents are not followed") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestAWrongSchemaIsAnErrorNotAPanic(t *testing.T) {
	for _, schema := range []string{
		``, `nonsense`, `{"type":"objekt"}`, `{"properties":3}`, `{"pattern":"("}`, `{"minimum":1e999999999}`,
		`{"title":5}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","format":5}`, `{"definitions":{"a":{"type":5}}}`,
		`{"$ref":"#/nowhere"}`, strings.Repeat(`{"not":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000),
	} {
		if _, err := tool.CompileSchema(json.RawMessage(schema)); err == nil {
			t.Errorf("compiled: %.80s", schema)
		}
	}
}

// FuzzValidate looks for arguments that panic, hang, or are taken for valid
// although encoding/json cannot read them.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":1,"a":2}`, `{"n":1e308}`, `{"n":-0.0}`, `{"s":"\ud800"}`, `[1,]`, `{"a":{"b":[null,true,1.5e-3]}}`, `1e1001`, "{\"\x00\":1}",
	} {
		f.Add(seed)
	}
	s, err := tool.CompileSchema(json.RawMessage(`{
		"properties": {"n": {"type": "integer", "multipleOf": 3}, "s": {"pattern": "^a*$"}, "a": {"uniqueItems": true}},
		"additionalProperties": {"anyOf": [{"type": "object"}, {"maxLength": 3}]}
	}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		err := s.Validate(json.RawMessage(args))
		if err == nil && !json.Valid([]byte(args)) {
			t.Errorf("%q was taken for valid", args)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%q: an error without words", args)
		}
	})
}
