package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

func resolved(t *testing.T, properties, args string) event.ToolCall {
	t.Helper()
	s := newSet(t, tool.Tool{Name: "a", Run: noop, Schema: json.RawMessage(`{"type":"object",` + properties + `}`)})
	return s.Resolve("c1", llm.ToolCall{Name: "a", Args: json.RawMessage(args)})
}

func TestHarmlessSlipsInArgumentsAreCorrected(t *testing.T) {
	const closed = `,"additionalProperties":false`
	read := `"properties":{"path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]` + closed
	typed := func(schema string) string { return `"properties":{"x":` + schema + `}` + closed }
	nested := typed(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["s"]}`)
	items := typed(`{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}`)
	for name, c := range map[string]struct{ schema, args, runs string }{
		"null for optional properties":      {read, `{"path":"a.txt","offset":null,"limit":null}`, `{"path":"a.txt"}`},
		"null in an object within":          {nested, `{"x":{"n":null,"s":"5"}}`, `{"x":{"s":"5"}}`},
		"null in the objects of a list":     {items, `{"x":[{"n":1},{"n":null},{"n":null}]}`, `{"x":[{"n":1},{},{}]}`},
		"null beside alternatives":          {typed(`{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}`), `{"x":null}`, `{}`},
		"null for one of some words":        {typed(`{"enum":["a","b"]}`), `{"x":null}`, `{}`},
		"null for what a reference says":    {`"$defs":{"n":{"type":"integer"}},` + typed(`{"$ref":"#/$defs/n"}`), `{"x":null}`, `{}`},
		"a number as text":                  {read, `{"path":"5","offset":"7"}`, `{"offset":7,"path":"5"}`},
		"a whole number with a point":       {read, `{"path":"5","offset":"7.0"}`, `{"offset":7,"path":"5"}`},
		"a truth as text":                   {typed(`{"type":"boolean"}`), `{"x":"false"}`, `{"x":false}`},
		"a list as text":                    {typed(`{"type":"array","items":{"type":"string"}}`), `{"x":"[\"1\",\"null\"]"}`, `{"x":["1","null"]}`},
		"an object as text":                 {nested, `{"x":"{\"s\":\"1\"}"}`, `{"x":{"s":"1"}}`},
		"texts within a text":               {nested, `{"x":"{\"s\":\"1\",\"n\":\"2\"}"}`, `{"x":{"n":2,"s":"1"}}`},
		"a number as text in a list":        {items, `{"x":[{"n":"1"},{"n":2}]}`, `{"x":[{"n":1},{"n":2}]}`},
		"a number as text, or null":         {typed(`{"type":["integer","null"]}`), `{"x":"5"}`, `{"x":5}`},
		"one of some numbers as text":       {typed(`{"enum":[1,2]}`), `{"x":"2"}`, `{"x":2}`},
		"a number as text for alternatives": {typed(`{"anyOf":[{"type":"integer"},{"type":"null"}]}`), `{"x":"5"}`, `{"x":5}`},
		"arguments encoded twice":           {read, `"{\"path\":\"a.txt\",\"limit\":null}"`, `{"path":"a.txt"}`},
	} {
		got := resolved(t, c.schema, c.args)
		if got.Problem != nil || string(got.Args) != c.runs || string(got.Sent) != c.args {
			t.Errorf("%s: %s was sent and %s runs (%v), want %s", name, got.Sent, got.Args, got.Problem, c.runs)
		}
		if want := tool.Digest("a", json.RawMessage(c.runs), ""); got.Digest != want {
			t.Errorf("%s: the call is not the one that it would be without the slip", name)
		}
	}
}

func TestOnlyHarmlessSlipsAreCorrected(t *testing.T) {
	typed := func(schema string) string {
		return `"properties":{"x":` + schema + `},"additionalProperties":false`
	}
	for name, c := range map[string]struct{ schema, args, problem string }{
		"null for a required property": {typed(`{"type":"string"}`) + `,"required":["x"]`, `{"x":null}`, "/x: must be string, not null"},
		"null in a list":               {typed(`{"type":"array","items":{"type":"integer"}}`), `{"x":[1,null]}`, "/x/1: must be integer, not null"},
		"null for an unknown property": {typed(`{"type":"string"}`), `{"y":null}`, `"y" is not known`},
		"a text that is no number":     {typed(`{"type":"integer"}`), `{"x":"5 lines"}`, "must be integer, not string"},
		"a fraction":                   {typed(`{"type":"integer"}`), `{"x":"5.5"}`, "must be integer, not string"},
		"a text that says null":        {typed(`{"type":["integer","null"]}`), `{"x":"null"}`, "not string"},
		"a text in a text":             {typed(`{"type":"integer"}`), `{"x":"\"5\""}`, "must be integer, not string"},
		"a member twice in a text":     {typed(`{"type":"object"}`), `{"x":"{\"a\":1,\"a\":2}"}`, "must be object, not string"},
		"a number for a text":          {typed(`{"type":"string"}`), `{"x":5}`, "must be string, not number"},
		"a text where another form is": {typed(`{"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]}`), `{"x":"55"}`, "none of the allowed forms"},
		"one of some words":            {typed(`{"enum":["auto",1]}`), `{"x":"1"}`, `must be one of "auto", 1`},
		"another mistake beside it":    {`"properties":{"x":{"type":"integer"},"y":{"type":"string"}},"required":["y"]`, `{"x":"1"}`, "must be integer, not string"},
		"a text in an alternative that lacks something": {
			`"anyOf":[{"properties":{"x":{"type":"integer"}}},{"properties":{"x":{"type":"string"}},"required":["y"]}]`, `{"x":"1"}`, "none of the allowed forms",
		},
	} {
		got := resolved(t, c.schema, c.args)
		if got.Problem == nil || !strings.Contains(got.Problem.Message, c.problem) || string(got.Args) != c.args || got.Sent != nil {
			t.Errorf("%s: %s runs, %v; want %q", name, got.Args, got.Problem, c.problem)
		}
	}
}

func TestArgumentsThatFitStayAsTheyCame(t *testing.T) {
	for _, c := range []struct{ schema, args string }{
		{`"properties":{"x":{"type":"string"}}`, `{"x":"5"}`},
		{`"properties":{"x":{"type":["string","integer"]}}`, `{"x":"5"}`},
		{`"properties":{"x":{"type":["string","null"]}}`, `{"x":null}`},
		{`"properties":{"x":{}}`, `{ "x" : null , "y":"[1]"}`},
	} {
		if got := resolved(t, c.schema, c.args); got.Problem != nil || string(got.Args) != c.args || got.Sent != nil {
			t.Errorf("%s: %s runs, %s was sent, %v", c.schema, got.Args, got.Sent, got.Problem)
		}
	}
}
