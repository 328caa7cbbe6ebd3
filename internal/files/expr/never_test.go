package expr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/expr"
)

// A comparison with a text that its other side can never be is found; any other is not.
func TestComparisonsWithTextThatIsNeverThereAreFound(t *testing.T) {
	const schema = `{"type": "object", "properties": {"grade": {"enum": ["good", "bad"]}, "of": {"type": "object", "properties": {"kind": {"const": "x"}}}, "free": {"type": "string"}}}`
	steps := map[string]expr.Step{"run-it": {Command: true}, "judge": {Result: json.RawMessage(schema)}, "each": {ForEach: true}}
	condition := expr.Scope{Place: expr.Condition, Steps: steps}
	item := expr.Scope{Place: expr.Condition, In: expr.ForEach, Items: []json.RawMessage{[]byte(`"a"`), []byte(`{"name":"b"}`), []byte(`3`)}}
	unknown := expr.Scope{Place: expr.Condition, In: expr.ForEach}
	for _, c := range []struct {
		text  string
		scope expr.Scope
		// want are places and pieces of what is found.
		want []string
	}{
		{"steps.run-it.content == 'ok'", condition, nil},
		{"steps.run-it.content == 'ok\\n'", condition, []string{`1:22 steps.run-it.content is never "ok\n"`}},
		{`steps["run-it"].content in ["ok", "ok\r\n"]`, condition, []string{`"ok\r\n"`}},
		{"steps.run-it.content.endsWith('ok\\n') || 'a\\n' == steps.run-it.content", condition, []string{"never ends with", "is never"}},
		{"steps.judge.content == 'ok\\n'", condition, nil},
		{"steps.run-it.status == 'complete'", condition, []string{`1:21 steps.run-it.status is never "complete", so this always gives the same: it can be completed, skipped`}},
		{"steps.run-it.status != 'failed'", condition, []string{"nothing is looked at behind a step that failed"}},
		{"steps.run-it.status == 'skipped' || steps.each.status == 'completed'", condition, nil},
		{"steps.judge.result.grade == 'great'", condition, []string{`it can be good, bad`}},
		{"steps.judge.result.grade == 'good' && steps.judge.result.free == 'great'", condition, nil},
		{"steps.judge.result.of.kind != 'y'", condition, []string{`steps.judge.result.of.kind is never "y"`}},
		{"steps.run-it.result.grade == 'great'", condition, nil},
		{"item == 'b' && item.name == 'a'", item, []string{`item is never "b"`, `item.name is never "a"`}},
		{"item == 'a' || item.name == 'b'", item, nil},
		{"item.nope == 'a'", item, []string{"it is no text"}},
		{"item == 'b'", unknown, nil},
		{"result.grade == 'great' || status == 'done' || content == 'ok\\n'", expr.Scope{Place: expr.Until, Single: true, Self: expr.Step{Result: json.RawMessage(schema)}}, []string{"result.grade", `status is never "done"`}},
		{"status == 'failed'", expr.Scope{Place: expr.Until, Single: true}, nil},
		{"content == 'ok\\n'", expr.Scope{Place: expr.Until, Single: true, Self: expr.Step{Command: true}}, []string{"without the line ends"}},
	} {
		checker, err := expr.NewChecker()
		if err == nil {
			err = checker.Check(c.text, c.scope)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		found := checker.Never(c.text, c.scope)
		said := make([]string, len(found))
		for i, one := range found {
			said[i] = strings.TrimPrefix(reported(one), "never_there ")
		}
		if len(said) != len(c.want) || slices.ContainsFunc(c.want, func(want string) bool { return !strings.Contains(strings.Join(said, "\n"), want) }) {
			t.Errorf("%s: %q, want %q", c.text, said, c.want)
		}
	}
}

func TestResultsAreThoseOfAForEachAlone(t *testing.T) {
	checker, err := expr.NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	scope := expr.Scope{Place: expr.Condition, Steps: map[string]expr.Step{"each": {ForEach: true}, "once": {}}}
	if err := checker.Check("steps.each.results.size() == 2 && steps.each.results[0].n == 1", scope); err != nil {
		t.Error(err)
	}
	if got := reported(checker.Check("steps.once.results.size() == 2", scope)); !strings.Contains(got, "there is no field results") {
		t.Error(got)
	}
}
