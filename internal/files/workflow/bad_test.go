package workflow_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/workflow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

const judgeAgents = `agents:
  coder: {description: Writes code.}
  lister:
    description: Lists.
    resultSchema: {type: object, properties: {services: {type: array, items: {type: string}}}}
`

func manySteps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\n- {id: s%d}", i)
	}
	return b.String()
}

// Each wrong file is reported with all its problems, each with its position.
func TestWorkflowProblemsHavePositions(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		// want lists line:column, path and a part of each message.
		want []string
	}{
		"a cycle": {"name: x\nsteps:\n- {id: a, dependsOn: [c]}\n- {id: b, dependsOn: [a]}\n- {id: c, dependsOn: [b]}\n",
			[]string{"4:23 steps[1].dependsOn[0] is a cycle: a waits for c waits for b waits for a"}},
		"itself": {"name: x\nsteps: [{id: a, dependsOn: [a]}]", []string{"2:29 steps[0].dependsOn[0] is a cycle: a waits for a"}},
		"all at once": {"nam: x\nsteps:\n- {id: A}\n- {id: b, agent: nobody, dependsOn: [c], timeout: 5 minutes, retries: -1}\n- {id: b}\n",
			[]string{"1:1 nam unknown key; did you mean name?", "1:1 name is missing", "3:8 steps[0].id", "4:18 steps[1].agent there is no agent \"nobody\"", "4:38 steps[1].dependsOn[0] there is no step c",
				"4:51 steps[1].timeout is \"5 minutes\"", "4:71 steps[1].retries is -1", "5:8 steps[2].id \"b\" is the id of another step"}},
		"a step of a loop from outside": {"name: x\nsteps:\n- id: a\n  loop: {maxIterations: 2, steps: [{id: in, dependsOn: [b]}]}\n- {id: b, dependsOn: [in]}\n",
			[]string{"4:57 steps[0].loop.steps[0].dependsOn[0] there is no step b", "5:23 steps[1].dependsOn[0] there is no step in"}},
		"a loop within a loop": {"name: x\nsteps:\n- id: a\n  loop: {maxIterations: 2, steps: [{id: in, loop: {maxIterations: 3}}]}\n",
			[]string{"4:51 steps[0].loop.steps[0].loop is a loop within a loop"}},
		"an empty array":                {"name: x\nsteps: [{id: a, loop: {forEach: []}}]", []string{"2:33 steps[0].loop.forEach is an empty list"}},
		"no array":                      {"name: x\nsteps: [{id: a, loop: {forEach: 3}}]", []string{"2:33 steps[0].loop.forEach is 3"}},
		"no array in CEL":               {"name: x\n" + judgeAgents + "steps:\n- {id: a, agent: lister}\n- {id: b, dependsOn: [a], loop: {forEach: steps.a.content}}", []string{"9:43 steps[1].loop.forEach it gives a value of type string and must give a list"}},
		"a million items":               {"name: x\nsteps: [{id: a, loop: {forEach: [" + strings.Repeat("1,", 499_999) + "1]}}]", []string{"2:33 steps[0].loop.forEach has 500000 items"}},
		"more items than the file says": {"apiVersion: pawl/v1\nname: x\nsteps: [{id: a, loop: {forEach: [1, 2, 3], max_items: 2}}]", []string{"3:33 steps[0].loop.forEach has 3 items"}},
		"expressions": {"name: x\n" + judgeAgents + `steps:
- {id: list-it, agent: lister}
- {id: b, agent: coder, dependsOn: [list-it], condition: "steps.list-it.result.sevices == []"}
- {id: c, dependsOn: [list-it], condition: item > 3}
- {id: d, dependsOn: [list-it], condition: "steps.list-it.content > 3"}
- {id: e, dependsOn: [list-it], condition: "steps.lost.status == ''"}
- {id: f, loop: {maxIterations: 2, until: "steps.b.content == ''"}}
- {id: g, loop: {maxIterations: 2, until: "content.contains('x'", steps: [{id: in}]}}
- {id: h, condition: "1 + 1"}
`, []string{"9:58 steps[1].condition there is no field sevices (character 21", "10:44 steps[2].condition there is no item here", "11:44 steps[3].condition found no matching overload",
			"12:44 steps[4].condition there is no step lost", "13:43 steps[5].loop.until there is no steps here", "14:43 steps[6].loop.until Syntax error", "15:22 steps[7].condition it gives a value of type int"}},
		"a judge without a verdict": {"name: x\n" + judgeAgents + "steps:\n- {id: a, loop: {maxIterations: 2, untilAgent: lister}}\n- {id: b, loop: {maxIterations: 2, untilAgent: coder}}\n- {id: c, loop: {maxIterations: 2, untilAgent: nobody}}",
			[]string{"8:48 steps[0].loop.untilAgent done of the agent lister is no boolean", "9:48 steps[1].loop.untilAgent the agent coder has no resultSchema", "10:48 steps[2].loop.untilAgent there is no agent"}},
		"our keys in a plain file": {"name: x\nbudget: {usd_per_run: 2}\nsteps: [{id: a, command: [make], loop: {maxIterations: 1, on_limit: ok}}]",
			[]string{"2:9 budget is no key of the workflow specification", "3:26 steps[0].command is no key", "3:69 steps[0].loop.on_limit is no key"}},
		"a wrong schema": {"name: x\nagents: {a: {description: d, resultSchema: {type: objekt}}}\nsteps: [{id: s, agent: a}]", []string{"2:51 agents.a.resultSchema.type"}},
		"a wrong agent": {"name: x\nagents: {a: {description: d, temperature: 3, topP: 2, maxTurns: -1, prompt: '@lost.md'}}\nsteps: [{id: s, agent: a}]",
			[]string{"2:43 agents.a.temperature is 3", "2:52 agents.a.topP is 2", "2:65 agents.a.maxTurns is -1", "2:77 agents.a.prompt cannot be read"}},
		"files that are not there":     {"name: x\nsteps: [{id: a, instructions: '@lost.md', contextFiles: [lost.txt]}]", []string{"2:31 steps[0].instructions cannot be read", "2:58 steps[0].contextFiles[0] cannot be read"}},
		"an include that is not there": {"name: x\nsteps: [{id: a, include: lost.yaml}]", []string{"2:26 steps[0].include cannot be read"}},
		"a wrong version":              {"name: x\nversion: 2\nsteps: [{id: a}]", []string{"2:10 version is 2"}},
		"a long text":                  {"name: x\nsteps: [{id: a, instructions: " + strings.Repeat("a", 2001) + "}]", []string{"2:31 steps[0].instructions has 2001 characters"}},
		"many steps":                   {"name: x\nsteps:" + manySteps(101), []string{"3:1 steps has 101 steps"}},
		"reasons to stop": {"apiVersion: pawl/v1\nname: x\nsteps: [{id: a, loop: {maxIterations: 2, stop_when: [{regex: '('}, {cel: index > 2}, {}], min_success: 3}}]",
			[]string{"3:62 steps[0].loop.stop_when[0].regex error parsing regexp", "3:74 steps[0].loop.stop_when[1].cel there is no index here", "3:86 steps[0].loop.stop_when[2] has 0 of them", "3:104 steps[0].loop.min_success is about loops over items"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workflow.Parse(filepath.Join(t.TempDir(), "w.yaml"), []byte(c.file), spec.Options{})
			problems, _ := errors.AsType[decode.Errors](err)
			if w != nil {
				t.Fatalf("it is taken")
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(problems, func(p decode.Problem) bool {
					return strings.HasPrefix(fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Path, p.Message), want)
				}) {
					t.Errorf("nobody says %s:\n%v", want, err)
				}
			}
			if len(problems) != len(c.want) {
				t.Errorf("%d problems are told, want %d:\n%v", len(problems), len(c.want), err)
			}
		})
	}
}

// rows: DAG-3, DAG-4
func TestIncludesAreReadFromTheirOwnDirectories(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "deploy.yaml"), "name: deploy\nagents: {deployer: {description: d, prompt: '@p.md'}}\noptions: {onStepFailure: abort}\nsteps: [{id: run, agent: deployer, instructions: '@p.md', contextFiles: [p.md]}]")
	write(t, filepath.Join(dir, "sub", "p.md"), "From the sub directory.")
	write(t, filepath.Join(dir, "self.yaml"), "name: self\nsteps: [{id: a, include: other.yaml}]")
	write(t, filepath.Join(dir, "other.yaml"), "name: other\nsteps: [{id: a, include: self.yaml}]")
	for i := range 7 {
		write(t, filepath.Join(dir, fmt.Sprintf("deep%d.yaml", i)), fmt.Sprintf("name: deep\nsteps: [{id: a, include: deep%d.yaml}]", i+1))
	}
	write(t, filepath.Join(dir, "deep7.yaml"), "name: deep\nsteps: [{id: a}]")
	parse := func(text string) (*workflow.Workflow, error) {
		return workflow.Parse(filepath.Join(dir, "w.yaml"), []byte(text), spec.Options{})
	}

	w, err := parse("name: x\nincludes: {deploy: sub/deploy.yaml}\nsteps: [{id: a, include: deploy}, {id: b, include: sub/deploy.yaml, retries: 2}, {id: c, agent: deployer}]")
	if err != nil {
		t.Fatal(err)
	}
	inner := w.Plan.Steps[1].Plan
	if inner == nil || inner.OnFailure != plan.Abort || w.Plan.Steps[1].Retries != 2 {
		t.Fatalf("included: %+v", w.Plan.Steps[1])
	}
	if a := inner.Steps[0].Agent; a.Instructions != "From the sub directory." || len(a.Files) != 1 || a.Files[0].Text != a.Instructions || w.Uses[a.Name].System != a.Instructions {
		t.Errorf("its files: %+v, %+v", a, w.Uses[a.Name])
	}

	for name, c := range map[string]struct{ text, want string }{
		"an include of itself":  {"name: x\nsteps: [{id: a, include: self.yaml}]", "self.yaml includes itself, by way of other.yaml"},
		"too deep":              {"name: x\nsteps: [{id: a, include: deep1.yaml}]", "is 6 deep"},
		"a collision of agents": {"name: x\nagents: {deployer: {description: mine}}\nsteps: [{id: a, include: sub/deploy.yaml}]", "the agent deployer is defined in"},
	} {
		if _, err := parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse("name: x\nsteps: [{id: a, include: deep3.yaml}]"); err != nil {
		t.Errorf("five deep: %v", err)
	}
	if _, err := workflow.Parse(filepath.Join(dir, "sent.yaml"), []byte("name: x\nsteps: [{id: a, include: sub/deploy.yaml}, {id: b, instructions: '@w.yaml'}]"), spec.Options{Sent: true}); err == nil || strings.Count(err.Error(), "file of this machine") != 2 {
		t.Errorf("sent: %v", err)
	}
}

func TestYAMLAndJSONOfAWorkflowGiveTheSamePlan(t *testing.T) {
	y, err := workflow.Parse("w.yaml", []byte("name: x\nsteps: [{id: a, timeout: 1h0m30s, loop: {forEach: [1, a, {b: [null, 1.5]}], maxConcurrency: 2}}]"), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := workflow.Parse("w.json", []byte(`{"name": "x", "steps": [{"id": "a", "timeout": "1h0m30s", "loop": {"forEach": [1, "a", {"b": [null, 1.5]}], "maxConcurrency": 2}}]}`), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprintf("%+v", show(t, y.Plan)), fmt.Sprintf("%+v", show(t, j.Plan)); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

// Each snippet of the page on loops parses unchanged within a minimal file.
func TestTheSnippetsOfThePageOnLoopsParse(t *testing.T) {
	paths, err := filepath.Glob("testdata/seed/*.yaml")
	if err != nil || len(paths) != 8 {
		t.Fatalf("%d snippets, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := workflow.Parse(path, text, spec.Options{})
		if err != nil {
			t.Errorf("%v", err)
		} else if len(w.Unbuilt) > 0 {
			t.Errorf("%v", w.Unbuilt)
		}
	}
}

func FuzzWorkflowFiles(f *testing.F) {
	paths, _ := filepath.Glob("testdata/examples/*.yaml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("agents:\n  a:\nsteps: []\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		w, err := workflow.Parse(filepath.Join(dir, "w.yaml"), []byte(text), spec.Options{Sent: true})
		problems, _ := errors.AsType[decode.Errors](err)
		if (w == nil) == (len(problems) == 0) {
			t.Errorf("%v, %v", w, err)
		}
	})
}
