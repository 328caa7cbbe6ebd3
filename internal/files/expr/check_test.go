package expr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/expr"
)

const services = `{"type": "object", "required": ["services"], "properties": {
	"services": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
	"count": {"type": "integer"}, "ok": {"type": "boolean"}, "name": {"type": "string"}}}`

func steps(ids ...string) map[string]expr.Step {
	all := map[string]expr.Step{"list-services": {Result: json.RawMessage(services)}}
	for _, id := range ids {
		all[id] = expr.Step{}
	}
	return all
}

func TestExpressionsAreCheckedBeforeTheyRun(t *testing.T) {
	condition := expr.Scope{Place: expr.Condition, Steps: steps("design", "in", "loop")}
	single := expr.Scope{Place: expr.Until, Single: true, Self: expr.Step{Result: json.RawMessage(services)}}
	several := expr.Scope{Place: expr.Until, Steps: steps("review")}
	items := expr.Scope{Place: expr.Items, Steps: steps("design")}
	inItem := expr.Scope{Place: expr.Condition, In: expr.ForEach, Steps: steps("deploy")}
	inRound := expr.Scope{Place: expr.Condition, In: expr.Repeat, Steps: steps("deploy")}
	round := expr.Scope{Place: expr.Round}
	for _, c := range []struct {
		text  string
		scope expr.Scope
		// want are the fault, the place and a piece of the message, "" for a right one.
		want string
	}{
		{"steps.design.content.contains('PASS')", condition, ""},
		{"steps.list-services.result.services.exists(s, s.name == 'auth')", condition, ""},
		{`steps["list-services"].result.ok && steps['design'].status == "completed"`, condition, ""},
		{"has(steps.list-services.result.count) && steps.list-services.result.count - 1 > 0.5", condition, ""},
		{"steps.in.content == '' || steps.loop.result.anything.at.all", condition, ""},
		{"steps.all(id, steps[id].status == 'completed') && steps.size() > 1", condition, ""},
		{"content == ''", condition, ""},
		{"round >= 2 && input != '' && previous.content.contains('ok') && previous.result.done && previous.status == 'completed'", round, ""},
		{"previous.text == ''", round, "unknown_name 1:9 there is no field text"},
		{"iteration > 1", round, "out_of_scope 1:1 there is no iteration here"},
		{"steps.a.content == ''", round, "out_of_scope 1:1 there is no steps here"},
		{"round > 1", condition, "out_of_scope 1:1 there is no round here; it is known in terminate of a team"},
		{"round + 1", round, "wrong_result 1:1 it gives a value of type int"},
		{"content.contains('healthy') && result.ok && status == 'completed' && iteration > 1", single, ""},
		{"steps.review.content.contains('LGTM') || iteration == 2", several, ""},
		{"steps.list-services.result.services", items, ""},
		{"steps.design.result", items, ""},
		{"[1, 'two', {'three': 3}]", items, ""},
		{"item.name == 'auth' && index > 0 && steps.deploy.status == 'completed'", inItem, ""},
		{"iteration > 0", inRound, ""},
		{"'steps.no-such' == r'steps.\\' && b\"steps.no-such\".size() > 0 // steps.no-such", condition, ""},

		{"steps.desing.content == ''", condition, "unknown_name 1:6 there is no step desing here; there are design, in, list-services, loop"},
		{"true && steps.no-such.content == ''", condition, "unknown_name 1:14 there is no step no-such"},
		{`steps["no-such"].content == ''`, condition, "unknown_name 1:6 there is no step no-such"},
		{"steps.list-services.result.serivces == []", condition, "unknown_name 1:27 there is no field serivces"},
		{"steps.list-services.result.services[0].nam == ''", condition, "unknown_name 1:39 there is no field nam"},
		{"steps.design.contents == ''", condition, "unknown_name 1:13 there is no field contents"},
		{"foo == 1", condition, "unknown_name 1:1 there is no variable or function foo"},
		{"shout(content)", condition, "unknown_name 1:6 there is no variable or function shout"},
		{"item == 1", condition, "out_of_scope 1:1 there is no item here; it is known within a forEach loop"},
		{"iteration == 1", condition, "out_of_scope"},
		{"result.done", condition, "out_of_scope"},
		{"steps.review.content == ''", single, "out_of_scope 1:1 there is no steps here"},
		{"content.contains('x')", several, "out_of_scope 1:1 there is no content here; it is known in until of a loop without steps"},
		{"index > 0", inRound, "out_of_scope"},
		{"steps.design.content > 3", condition, "wrong_type 1:22 found no matching overload"},
		{"steps.list-services.result.name.contains(3)", condition, "wrong_type 1:41"},
		{"'a' +", condition, "syntax 1:6"},
		{"steps.list-services.content", condition, "wrong_result 1:1 it gives a value of type string and must give true or false"},
		{"steps.list-services.content", items, "wrong_result 1:1 it gives a value of type string and must give a list"},
		{"1 + 2", single, "wrong_result"},
		{"steps.list-services.content == '' &&\n  steps.list-services.result.nope", condition, "unknown_name 2:29"},
	} {
		t.Run(c.text, func(t *testing.T) {
			checker, err := expr.NewChecker()
			if err != nil {
				t.Fatal(err)
			}
			if got := reported(checker.Check(c.text, c.scope)); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// reported is the first of some errors in a line.
func reported(err error) string {
	one, ok := errors.AsType[*expr.Error](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return "no error of ours: " + err.Error()
	}
	return fmt.Sprintf("%s %d:%d %s", one.Fault, one.Line, one.Column, one.Message)
}
