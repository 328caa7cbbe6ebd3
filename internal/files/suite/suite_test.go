package suite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/suite"
)

func TestASuiteIsReadStrictly(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const head = "kind: Eval\nagent: agent.yaml\n"
	ok := "cases: [{name: a, evaluators: [{contains: x}]}]"
	for name, c := range map[string]struct{ text, want string }{
		"the least":               {head + ok, ""},
		"no cases":                {head, "cases: is missing"},
		"an unknown key":          {head + "trials: 3\n" + ok, "3:1: trials: unknown key"},
		"a missing file":          {"kind: Eval\nagent: other.yaml\n" + ok, "2:8: agent: there is no file other.yaml"},
		"nothing to run":          {"kind: Eval\n" + ok, "cases[0].agent: is missing"},
		"two evaluators in one":   {head + "cases: [{name: a, evaluators: [{contains: x, regex: y}]}]", "has 2 of them"},
		"a wrong type":            {head + "cases: [{name: a, evaluators: [{contains: 3}]}]", `write it in quotes: "3"`},
		"a bad pattern":           {head + "cases: [{name: a, evaluators: [{regex: '('}]}]", "is no pattern"},
		"an unknown variable":     {head + "cases: [{name: a, evaluators: [{cel: tokens < 3}]}]", "there is no variable or function tokens"},
		"an expression of a loop": {head + "cases: [{name: a, evaluators: [{cel: iteration < 3}]}]", "there is no iteration here"},
		"no truth value":          {head + "cases: [{name: a, evaluators: [{cel: cycles + 1}]}]", "must give true or false"},
		"no judge":                {head + "cases: [{name: a, evaluators: [{llm_judge: It is good.}]}]", "llm_judge.model: is missing"},
		"a judge":                 {head + "judge: scripted/x.yaml\ncases: [{name: a, evaluators: [{llm_judge: It is good.}, {rubric: [It is short.]}]}]", ""},
		"one name twice":          {head + "evaluators: [{contains: x}]\ncases: [{name: a}, {name: a}]", `cases[0] has the name "a" too`},
		"a file outside":          {head + "cases: [{name: a, files: {../x: y}, evaluators: [{contains: x}]}]", "leaves it"},
		"a recorded run twice":    {head + "cases: [{name: a, recorded: k7x2, runs: 2, evaluators: [{contains: x}]}]", "a recorded run is the same each time"},
		"a budget of nothing":     {head + "budget: 0\n" + ok, "an amount in USD above 0"},
		"no evaluator":            {head + "cases: [{name: a}]", "cases[0].evaluators: is missing"},
	} {
		_, err := suite.Parse(filepath.Join(dir, "suite.yaml"), []byte(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
