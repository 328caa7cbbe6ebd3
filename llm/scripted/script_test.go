package scripted_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

func TestAScriptThatIsWrongSaysWhereAndWhatWasExpected(t *testing.T) {
	for script, want := range map[string][]string{
		"x":                                       {`a.yaml:1:1: is "x" (expected a list of turns)`},
		"text: hi":                                {`a.yaml:1:1: is a mapping (expected a list of turns)`},
		"- hi":                                    {`a.yaml:1:3: turn 1: is "hi" (expected a mapping of text, reasoning, tool_calls, usage, finish, error, delay, expect, for)`},
		"- text: hi\n- {txt: hi}":                 {`a.yaml:2:4: turn 2: txt: unknown key (expected one of text, reasoning,`},
		"- text: [hi]":                            {`a.yaml:1:9: turn 1: text: is a list (expected a text)`},
		"- {text: a, text: b}":                    {`a.yaml:1:13: turn 1: text: the key is given twice`},
		"- usage: {input: many}":                  {`a.yaml:1:18: turn 1: usage.input: is "many" (expected a whole number)`},
		"- usage: {input: 1.5}":                   {`usage.input: is "1.5" (expected a whole number)`},
		"- error: {status: x}":                    {`turn 1: error.status: is "x" (expected a whole number)`},
		"- tool_calls: {name: x}":                 {`turn 1: tool_calls: is a mapping (expected a list)`},
		"- tool_calls: [{nam: x}]":                {`turn 1: tool_calls[0].nam: unknown key (expected one of name, arguments)`},
		"- tool_calls: [{arguments: x}]":          {"turn 1: tool_calls[0]: name is missing"},
		"- expect: {last: {a: b}}":                {`turn 1: expect.last: is a mapping (expected a text, or a list of texts)`},
		"- expect: {last: [{a: b}]}":              {`turn 1: expect.last[0]: is a mapping (expected a text)`},
		"- {delay: soon}":                         {`turn 1: delay: "soon" is neither a duration like 1.5s nor a number of seconds`},
		"- {a: 1}\n- {usage: x, b: 2}":            {"a.yaml:1:4: turn 1: a: unknown key", `a.yaml:2:11: turn 2: usage: is "x"`, "a.yaml:2:14: turn 2: b: unknown key"},
		"- [a":                                    {"a.yaml:2:1:", "(expected valid YAML)"},
		"- &a [*a]":                               {"turn 1: is a list"},
		"- text: *nobody":                         {"(expected valid YAML)"},
		"-\n- text: hi":                           {`a.yaml:1:2: turn 1: is empty (expected a mapping of text, reasoning,`},
		"- tool_calls: [~, {name: x}]":            {`turn 1: tool_calls[0]: is empty (expected a mapping of name, arguments)`},
		"- text: hi\n---\n- text: ho":             {`a.yaml:2:1: a second document begins here; --- and ... separate documents (expected one list of turns)`},
		"- text: hi\n---\n- [":                    {"(expected valid YAML)"},
		"- {delay: -1s}":                          {`turn 1: delay: "-1s" is less than 0`},
		"- error: {status: 429, retry_after: -1}": {`turn 1: error: retry_after: "-1" is less than 0`},
		"- usage: {input: -4}":                    {`turn 1: usage: a number of tokens is less than 0`},
	} {
		_, err := scripted.Parse("a.yaml", []byte(script))
		if err == nil {
			t.Errorf("%q is taken", script)
			continue
		}
		for _, part := range append(want, "a.yaml") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v\ndoes not say %q", script, err, part)
			}
		}
		for _, inside := range []string{"!!", "fileTurn", "scripted.f", ": yaml: ", "construct"} {
			if strings.Contains(err.Error(), inside) {
				t.Errorf("%q: %v\nspeaks of %s", script, err, inside)
			}
		}
	}
}

func TestAScriptIsTakenInEveryFormThatItMayHave(t *testing.T) {
	for _, script := range []string{
		"", "# nothing yet\n", "---\n", "- text: 5\n", "- text:\n", "- text: hi\n...\n", "---\n- text: hi\n", "- text: hi\n---\n", "- text: hi\n---\n# the end\n---\n", "- tool_calls: [{name: x, arguments: [1, {a: b}]}]\n",
		"- &turn {text: hi}\n- *turn\n", "- &turn {text: hi}\n- {<<: *turn, delay: 1}\n", "- usage: {input: 10, output: 0x10}\n",
		"- error: {status: 429, retry_after: 1.5}\n", "- {error: {class: network, retry_after: 2s}}\n", "- expect: {last: a, contains: [a, b], tools: []}\n",
	} {
		if _, err := scripted.Parse("a.yaml", []byte(script)); err != nil {
			t.Errorf("%q: %v", script, err)
		}
	}
}

func TestWhatATurnSaysBeforeItFailsArrives(t *testing.T) {
	for script, want := range map[string]struct {
		streamed string
		usage    llm.Usage
	}{
		"{text: half an answer, error: {class: network}}": {"half an answer", llm.Usage{Estimated: true}},
		"{error: {class: network, partial: half of it}}":  {"half of it", llm.Usage{Estimated: true}},
		"{reasoning: hm, text: so, tool_calls: [{name: x, arguments: '{'}], usage: {input: 7, output: 2}, error: {status: 529}}": {
			"hmsox{", llm.Usage{Input: 7, Output: 2},
		},
	} {
		m, err := scripted.Parse("a.yaml", []byte("- "+script))
		if err != nil {
			t.Fatal(err)
		}
		var streamed strings.Builder
		resp, err := m.Stream(t.Context(), &llm.Request{}, func(d llm.Delta) { streamed.WriteString(d.Tool + d.Text) })
		if err == nil || resp == nil || streamed.String() != want.streamed || resp.Usage != want.usage {
			t.Errorf("%s: streamed %q, response %+v, error %v", script, streamed.String(), resp, err)
		}
	}
	m, err := scripted.Parse("a.yaml", []byte("- error: {status: 429}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := m.Generate(t.Context(), &llm.Request{}); err == nil || resp != nil {
		t.Errorf("of a turn that only fails came %+v, %v", resp, err)
	}
}

func TestAScriptThatIsTooShortSaysHowTurnsAreCounted(t *testing.T) {
	_, err := scripted.New("a", scripted.Turn{Text: "hi"}).Generate(t.Context(), &llm.Request{Ordinal: 1})
	const want = "the run asks for turn 2 and the script ends after 1; the calls of all models of a run are counted together"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestALongMessageIsShownUpToAWholeCharacter(t *testing.T) {
	m, err := scripted.Parse("a.yaml", []byte("- {expect: {last: other}, text: hi}\n"))
	if err != nil {
		t.Fatal(err)
	}
	message := llm.UserText(strings.Repeat("x", 299) + "éé")
	_, err = m.Generate(t.Context(), &llm.Request{Messages: []*llm.Message{message}})
	if want := `it is "` + strings.Repeat("x", 299) + `…"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want it to say that %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"- text: hi\n  tool_calls: [{name: x, arguments: {a: 1}}]\n", "- &a {error: {status: 429}}\n- *a\n", "- {<<: {text: x}}", "- &a [*a]", "[[[", "- usage: {input: 1e9}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := scripted.Parse("a.yaml", data); err == nil && m == nil || err != nil && err.Error() == "" {
			t.Errorf("neither a model nor a reason")
		}
	})
}
