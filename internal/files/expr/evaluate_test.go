package expr_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/expr"
)

const variables = `{"steps": {
	"list-services": {"content": "two", "status": "completed", "result": {"services": [{"name": "auth", "n": 1}, {"name": "web", "n": 2.5}], "big": 9007199254740993}},
	"none": {"content": "", "status": "skipped"}},
	"item": {"name": "auth"}, "index": 0, "iteration": 2, "content": "it is healthy", "nothing": null}`

func TestExpressionsAreEvaluatedOverJSON(t *testing.T) {
	for text, want := range map[string]string{
		"steps.list-services.result.services":                   `[{"n":1,"name":"auth"},{"n":2.5,"name":"web"}]`,
		`steps["list-services"].result.services.map(s, s.name)`: `["auth","web"]`,
		"steps.list-services.result.big":                        `9007199254740993`,
		"content.contains('healthy') && iteration > 1":          `true`,
		"iteration + 1":                     `3`,
		"iteration > 1.5":                   `true`,
		"item.name == 'auth' && index == 0": `true`,
		"has(steps.none.result)":            `false`,
		"has(steps.list-services.result) && !has(steps.nobody)": `true`,
		"{'b': [null, 'a<b'], 'a': 1.5}":                        `{"a":1.5,"b":[null,"a\u003cb"]}`,
		"steps.none.result.x":                                   "missing_key 0:0 no such key: result",
		"steps.nobody.status == ''":                             "missing_key",
		"steps.list-services.result.nope.deeper":                "missing_key",
		"item['nope']":                                          "missing_key",
		"item.name > 3":                                         "wrong_type",
		"item + item":                                           "wrong_type",
		`"a\nb\n".trim().split("\n")`:                           `["a","b"]`,
		`["a", "b"].join(", ").replace("a", "A").lowerAscii()`:  `"a, b"`,
		`"%s of %d".format(["a", 3]).indexOf("of") == 2`:        `true`,
		strings.Repeat(" ", 1) + "'" + strings.Repeat("x ", 12_000) + "'.trim().size() > 0":                                                          `true`,
		"'" + strings.Repeat("x", 40_000) + "'.replace('x', '" + strings.Repeat("y", 40_000) + "') == ''":                                            "bad_value 0:0 the text is longer",
		"['" + strings.Repeat("x", 9_000) + "'].join() + [" + strings.Repeat("'',", 4_000) + "''].join('" + strings.Repeat("y", 40_000) + "') == ''": "bad_value 0:0 the text is longer",
		"1 / index":                              "bad_value",
		"steps.list-services.result.services[7]": "bad_value",
		"foo":                                    "unknown_name 1:1",
		"status == ''":                           "out_of_scope 1:1",
		"1 +":                                    "syntax",
		"timestamp('2026-01-01T00:00:00Z')":      "wrong_result",
		"{1: 2}":                                 "wrong_result",
		"1.0 / 0.0":                              "wrong_result",
		heavy:                                    "too_costly",
		"[content]" + strings.Repeat(".map(a, [a, a])", 30):              "too_costly",
		"[content]" + strings.Repeat(".map(a, [a, a, a, a])", 12):        "too_costly",
		"steps.list-services.content.matches('(a*)*') && content == 'x'": `false`,
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			value, err := expr.New().Evaluate(t.Context(), text, json.RawMessage(variables))
			got := string(value)
			if err != nil {
				got = reported(err)
			}
			if !strings.HasPrefix(got, want) || err == nil && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// heavy is a loop within a loop within a loop.
const heavy = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, a*b*c*d > 0))))"

func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := expr.New().Evaluate(ctx, heavy, nil); err == nil {
		t.Error("it was evaluated after its end")
	}
}

func TestNoVariablesAreAnEmptyObject(t *testing.T) {
	value, err := expr.New().Evaluate(t.Context(), "1 + 1 == 2", nil)
	if string(value) != "true" || err != nil {
		t.Errorf("got %s, %v", value, err)
	}
}

func FuzzExpressions(f *testing.F) {
	for _, text := range []string{
		"steps.list-services.result.services", `steps["a-b"].content == '\''`, "has(steps.a-b)", "steps.`a`.b", "r'steps.\\' + \"\"\"steps.a-\"\"\"",
		"steps . a-b\n.content // steps.c", "steps.a-b(1)", "x.steps.a-b", "steps[", "steps.", "'", "b'x", heavy, "\xff",
	} {
		f.Add(text, variables)
	}
	e := expr.New()
	checker, err := expr.NewChecker()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, vars string) {
		value, err := e.Evaluate(t.Context(), text, json.RawMessage(vars))
		if err == nil && !json.Valid(value) {
			t.Errorf("%q gave %q, which is no JSON", text, value)
		}
		err = checker.Check(text, expr.Scope{Place: expr.Condition, Steps: steps("a-b")})
		if err != nil && err.Error() == "" {
			t.Errorf("%q is refused without a word", text)
		}
	})
}
