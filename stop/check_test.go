package stop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/stop"
)

func TestAConditionIsHeldToItsKind(t *testing.T) {
	far, most, least, below := 256, 255, 0, -1
	for name, tt := range map[string]struct {
		condition stop.Condition
		keys      []string
	}{
		"no kind":             {stop.Condition{}, []string{"kind"}},
		"another kind":        {stop.Condition{Kind: "never"}, []string{"kind"}},
		"a text":              {stop.Condition{Kind: "text-includes", Text: "x"}, nil},
		"no text":             {stop.Condition{Kind: "text-includes"}, []string{"text"}},
		"a result":            {stop.Condition{Kind: "tool-result", Tool: "x", Match: stop.Match{Contains: "y"}}, nil},
		"a result of nothing": {stop.Condition{Kind: "tool-result"}, []string{"tool", "match"}},
		"no such exit code":   {stop.Condition{Kind: "tool-result", Tool: "x", Match: stop.Match{ExitCode: &far}}, []string{"match.exit_code"}},
		"one below zero":      {stop.Condition{Kind: "tool-result", Tool: "x", Match: stop.Match{ExitCode: &below}}, []string{"match.exit_code"}},
		"the least":           {stop.Condition{Kind: "tool-result", Tool: "x", Match: stop.Match{ExitCode: &least}}, nil},
		"the most":            {stop.Condition{Kind: "tool-result", Tool: "x", Match: stop.Match{ExitCode: &most}}, nil},
		"the money":           {stop.Condition{Kind: "budget-exhausted"}, nil},
		"more than the money": {stop.Condition{Kind: "budget-exhausted", Text: "x", Tool: "x"}, []string{"text", "tool"}},
	} {
		var keys []string
		tt.condition.Check(func(key, _, _ string, _ ...any) { keys = append(keys, key) })
		if diff := cmp.Diff(tt.keys, keys); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
