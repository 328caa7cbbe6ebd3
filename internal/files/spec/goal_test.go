package spec_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

const goalHead = "kind: Goal\nidentity: {name: green}\nmodel_policy: {primary: {model: scripted/x}}\nprompt: {system: You fix.}\ntools: {allow: [fs.edit]}\n"

const smallGoal = goalHead + "objective: Make the tests pass.\ndone: {when: [{command: [go, test, ./...]}]}\nvalidation: [{cel: 'content.contains(\"ok\")'}]\n"

func TestAGoalIsALoopAroundItsAgent(t *testing.T) {
	g, err := spec.ParseGoal("goal.yaml", []byte(goalHead+`
objective: Make the tests pass.
done:
  when: [{command: {argv: [go, test], timeout: 10m}}, {cel: "status == 'completed'"}]
  judge: {model: scripted/judge, prompt: Is it well made?}
  human: true
validation: [{command: [make, lint]}]
plan: [find the bug, mend it]
checkpoints: {every: 15m}
budgets: {max_wall_time_seconds: 60}
stop: [{max_iterations: 7}, {failures: 2}, {final_answer: true}]
`), spec.Options{Tools: rules.Tools})
	if err != nil {
		t.Fatal(err)
	}
	l := g.Steps.Steps[0].Loop
	want := []plan.Stop{
		{Command: &plan.Command{Argv: []string{"make", "lint"}, Timeout: 2 * time.Minute}},
		{Command: &plan.Command{Argv: []string{"go", "test"}, Timeout: 10 * time.Minute}}, {Expression: "status == 'completed'"}, {Judge: "judge"},
		{Human: &plan.Human{Prompt: "Is the objective reached? Make the tests pass.", Feedback: true}},
	}
	if d := cmp.Diff(want, l.Checks()); d != "" {
		t.Errorf("what is looked at: %s", d)
	}
	of := l.Goal
	if l.Max != 7 || l.ErrorsMax != 2 || !of.FinalAnswer || of.After != 15*time.Minute || of.Every != 0 || of.Planner != "" || len(of.Steps) != 2 || len(of.Done) != 4 {
		t.Errorf("%+v %+v", l, of)
	}
	for name, model := range map[string]string{"worker": "scripted/x", "reviewer": "scripted/x", "judge": "scripted/judge"} {
		if a := g.Uses[name]; a == nil || a.ModelPolicy.Primary.Model != model || (name == "worker") != (a.ResultSchema == nil) {
			t.Errorf("%s is %+v", name, a)
		}
	}
}

func TestAGoalHasDefaults(t *testing.T) {
	g, err := spec.ParseGoal("goal.yaml", []byte(smallGoal+"plan: auto\n"), spec.Options{Tools: rules.Tools})
	if err != nil {
		t.Fatal(err)
	}
	l := g.Steps.Steps[0].Loop
	if l.Max != 20 || l.ErrorsMax != 3 || l.Goal.Every != 3 || l.Goal.Planner != "planner" || g.Uses["planner"] == nil || l.OnLimit != plan.LimitStopped {
		t.Errorf("%+v %+v", l, l.Goal)
	}
}

// rows: HAR-76
func TestABadGoalTellsEveryProblemWithItsPlace(t *testing.T) {
	objective := func(text string) string { return strings.Replace(smallGoal, "Make the tests pass.", text, 1) }
	without := func(line string) string {
		all := strings.Split(smallGoal, "\n")
		for i := range all {
			if strings.HasPrefix(all[i], line+":") {
				all[i] = ""
			}
		}
		return strings.Join(all, "\n")
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"good":                        {smallGoal, nil},
		"good, on two lines":          {objective(">-\n  Make the tests\n  pass"), nil},
		"good, with an abbreviation":  {objective("Support file formats, e.g. JSON and v1.2 of it, in the reader."), nil},
		"no objective":                {without("objective"), []string{"objective: is missing"}},
		"an empty objective":          {objective(`" "`), []string{"goal.yaml:6:12: objective: is empty"}},
		"a list":                      {objective("[Make the tests pass, Deploy]"), []string{"goal.yaml:6:12: objective: is a list"}},
		"a list of lines":             {objective("|\n  - make the tests pass\n  - deploy"), []string{"goal.yaml:6:12: objective: is a list; a goal has one objective"}},
		"two sentences":               {objective("Make the tests pass. Then deploy it."), []string{"goal.yaml:6:12: objective: has 2 sentences"}},
		"two sentences, in small":     {objective("make the tests pass. then deploy it"), []string{"objective: has 2 sentences"}},
		"too long":                    {objective(strings.Repeat("é", 301)), []string{"goal.yaml:6:12: objective: has 301 characters (expected at most 300 characters)"}},
		"no done":                     {without("done"), []string{"done: is missing"}},
		"an empty done":               {strings.Replace(smallGoal, "{when: [{command: [go, test, ./...]}]}", "{human: true}", 1), []string{"done.when: is missing"}},
		"nothing that shows it":       {strings.Replace(smallGoal, "[{command: [go, test, ./...]}]", "[]", 1), []string{"goal.yaml:7:14: done.when: is an empty list"}},
		"no validation":               {without("validation"), []string{"validation: is missing"}},
		"an empty validation":         {strings.Replace(smallGoal, `[{cel: 'content.contains("ok")'}]`, "[]", 1), []string{"goal.yaml:8:13: validation: is an empty list"}},
		"everything at once":          {"kind: Goal\n", []string{"identity.name: is missing", "objective: is missing", "done: is missing", "validation: is missing"}},
		"an expression that is none":  {strings.Replace(smallGoal, `content.contains("ok")`, "contents +", 1), []string{"validation[0].cel: "}},
		"evidence of two sorts":       {strings.Replace(smallGoal, "{command: [go", "{cel: 'true', command: [go", 1), []string{"done.when[0]: says both"}},
		"evidence of none":            {strings.Replace(smallGoal, "{command: [go, test, ./...]}", "{}", 1), []string{"done.when[0]: says neither"}},
		"no program":                  {strings.Replace(smallGoal, "[go, test, ./...]", "[]", 1), []string{"done.when[0].command: names no program"}},
		"an unknown key":              {smallGoal + "objectives: x\n", []string{"goal.yaml:9:1: objectives: unknown key; did you mean objective?"}},
		"an agent's own limits":       {strings.Replace(smallGoal, goalHead, "kind: Goal\nidentity: {name: x}\nagent: none.yaml\nbudgets: {max_cost: 1, actions: {max_tool_calls: ask}}\n", 1), []string{"budgets.max_cost: unknown key", "budgets: the file in agent says", "agent: "}},
		"agent beside tools":          {smallGoal + "agent: fixer.yaml\n", []string{"model_policy: the file in agent says that", "prompt: the file", "tools: the file", "agent: "}},
		"a bad tool":                  {strings.Replace(smallGoal, "fs.edit", "fs.edits", 1), []string{"goal.yaml:5:17: tools.allow[0]: "}},
		"a checkpoint of no time":     {smallGoal + "checkpoints: {every: 0}\n", []string{"checkpoints.every: is 0 (expected a number of iterations, or a time such as 15m)"}},
		"a checkpoint of nothing":     {smallGoal + "checkpoints: {}\n", []string{"checkpoints.every: is missing"}},
		"an empty plan":               {smallGoal + "plan: []\n", []string{"goal.yaml:9:7: plan: is an empty list"}},
		"a plan that is none":         {smallGoal + "plan: soon\n", []string{"plan: is \"soon\" (expected auto, or a list of steps)"}},
		"a rule twice":                {smallGoal + "stop: [{failures: 1}, {failures: 2}]\n", []string{"stop[1]: failures is given twice"}},
		"a rule that is none":         {smallGoal + "stop: [{}]\n", []string{"stop[0]: has 0 of them"}},
		"a judge who cannot be asked": {strings.Replace(smallGoal, "{when:", "{judge: {model: nobody}, when:", 1), []string{`done.judge.model: is "nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := spec.ParseGoal("goal.yaml", []byte(c.text), spec.Options{Tools: rules.Tools})
			problems, _ := errors.AsType[decode.Errors](err)
			if len(problems) != len(c.want) || (g == nil) != (c.want != nil) {
				t.Fatalf("%v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in\n%v", want, err)
				}
			}
		})
	}
}

func FuzzParseGoal(f *testing.F) {
	f.Add(smallGoal)
	f.Add("kind: Goal\nobjective: [a, b]\n")
	f.Add("objective: 'e.g. Mr. X. Y'\nplan: auto\ncheckpoints: {every: 15m}\nstop: [{final_answer: true}]\ndone: {judge: {}, human: 1}")
	f.Add("a: &x {b: *x}\ndone: *x\nvalidation: [{command: {argv: [a], timeout: 1h}}]")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := spec.ParseGoal("g.yaml", []byte(text), spec.Options{Tools: rules.Tools})
		problems, _ := errors.AsType[decode.Errors](err)
		if (g == nil) == (len(problems) == 0) {
			t.Fatalf("%v, %v", g, err)
		}
		if g != nil {
			if err := g.Steps.Check(); err != nil {
				t.Errorf("the plan of a valid file: %v", err)
			}
		}
	})
}
