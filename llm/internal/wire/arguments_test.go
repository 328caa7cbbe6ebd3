package wire_test

import (
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// What is no JSON never becomes a call that can run.
func TestArgumentsAreJSONOrText(t *testing.T) {
	for said, want := range map[string][2]string{
		"":              {"{}", ""},
		" \n":           {"{}", ""},
		`{"path":"a"}`:  {`{"path":"a"}`, ""},
		`{"path":"a`:    {"", `{"path":"a`},
		`{} and more`:   {"", `{} and more`},
		`"a sentence"`:  {`"a sentence"`, ""},
		`{"a":1}{"b":2`: {"", `{"a":1}{"b":2`},
	} {
		args, text := wire.Arguments(said)
		if string(args) != want[0] || text != want[1] {
			t.Errorf("%q is read as %s and the text %q, want %q", said, args, text, want)
		}
	}
}

func TestAToolOfTheProviderIsGivenByNameOrAsAnObject(t *testing.T) {
	for tool, whole := range map[string]string{
		"web_search":                "",
		` {"type":"web_search"} `:   `{"type":"web_search"}`,
		`{"type":"web_search"`:      "",
		`["web_search"]`:            "",
		"{}{}":                      "",
		`{"type":"x","n":{"a":[]}}`: `{"type":"x","n":{"a":[]}}`,
	} {
		if got, ok := wire.ProviderToolAsJSON(tool); ok != (whole != "") || ok && string(got) != whole {
			t.Errorf("%q is read as the object %s: %v", tool, got, ok)
		}
	}
	err := llm.AsError(wire.UnknownProviderTool("acme", "dig", map[string]int{"web_search": 1, "code": 2}))
	if want := `there is no provider tool "dig"; known are code, web_search, or give the tool as a JSON object`; err.Message != want || err.Provider != "acme" {
		t.Errorf("the error is %v", err)
	}
}

func TestAMemberIsFoundInAnObjectAlone(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1,"b":[2],"b":3}`: "[2]",
		`{"\u0062":"x"}`:        `"x"`,
		`{"a":{"b":1}}`:         "",
		`["b"]`:                 "",
		`null`:                  "",
		"":                      "",
		`{"a":1`:                "",
	} {
		if got := wire.Member([]byte(object), "b"); string(got) != want {
			t.Errorf("b of %q is %s, want %s", object, got, want)
		}
	}
}
