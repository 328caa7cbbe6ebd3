package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/view"
)

// stepsOf is the view of a plan that has just begun.
func stepsOf(t *testing.T, p plan.Plan) *view.View {
	t.Helper()
	started, err := flow.Start(flow.Config{Plan: p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var s view.View
	s.Add(&event.Event{Seq: 1, Time: time.Unix(0, 0), Data: started})
	return &s
}

func told(notes []note) string {
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.text)
	}
	return strings.Join(lines, "\n")
}

func TestTheTreeOfALoopOverManyItemsIsOneLine(t *testing.T) {
	agent := &plan.Agent{Name: "a"}
	s := stepsOf(t, plan.Plan{Steps: []plan.Step{
		{ID: "each", Loop: &plan.Loop{Items: &plan.Items{Expression: "x"}, Body: plan.Plan{Steps: []plan.Step{{ID: "do", Agent: agent}}}}},
		{ID: "after", Agent: agent, DependsOn: []string{"each"}},
	}})
	seq, lines := int64(1), 0
	hear := func(d event.Data) {
		seq++
		e := event.Event{Seq: seq, Time: time.Unix(seq/1000, 0), Data: d}
		s.Add(&e)
		lines += len(s.Steps.Progress(&e))
	}
	const items = 10_000
	hear(event.StepStarted{Step: "each", Attempt: 1})
	hear(event.ConditionEvaluated{ID: "each/items", Step: "each", Expression: "x", Value: []byte("[" + strings.Repeat("0,", items-1) + "0]")})
	for i := range items {
		step := fmt.Sprintf("each[%d].do", i)
		hear(event.ChildStarted{Child: fmt.Sprint("c", i), Step: step, ID: step})
		hear(event.StepStarted{Step: step, Attempt: 1, Index: &i})
		status := event.StepStatusCompleted
		if i == 7 {
			status = event.StepStatusFailed
		}
		hear(event.StepFinished{Step: step, Attempt: 1, Status: status})
		hear(event.Iteration{Step: "each", Index: i, Number: i + 1})
		if got := len(liveSteps(&s.Steps, 20, ink{}, new(activity))); got != 2 {
			t.Fatalf("item %d: the tree has %d lines: %s", i, got, told(liveSteps(&s.Steps, 20, ink{}, new(activity))))
		}
	}
	if got, want := told(liveSteps(&s.Steps, 20, ink{}, new(activity))), "▸ each  running  10000/10000 items, 1 failed  40s\n· after  waiting"; got != want {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
	if lines > 13 { // the beginning, each tenth part, and the failure
		t.Errorf("%d lines tell of %d items", lines, items)
	}
}

func TestATreeOfManyStepsShowsThoseUnderWayAndCountsTheOthers(t *testing.T) {
	var p plan.Plan
	for i := range 1000 {
		p.Steps = append(p.Steps, plan.Step{ID: fmt.Sprint("s", i), Agent: &plan.Agent{Name: "a"}})
	}
	s := stepsOf(t, p)
	for i := range 500 {
		s.Add(&event.Event{Data: event.StepStarted{Step: fmt.Sprint("s", i), Attempt: 1}})
		if i != 3 && i != 400 {
			s.Add(&event.Event{Data: event.StepFinished{Step: fmt.Sprint("s", i), Status: event.StepStatusCompleted}})
		}
	}
	tree := liveSteps(&s.Steps, 5, ink{}, new(activity))
	if got := told(tree); len(tree) > 5 || !strings.Contains(got, "▸ s3 ") || !strings.Contains(got, "▸ s400 ") ||
		!regexp.MustCompile(`  and 498 completed, 49\d waiting$`).MatchString(got) {
		t.Errorf("the tree is\n%s", got)
	}
}

const twoSteps = `name: two
agents: {writer: {description: Writes., model: scripted/slow.yaml, tools: []}}
steps:
- {id: one, agent: writer}
- {id: two, agent: writer, dependsOn: [one]}
`

func TestATerminalShowsTheStepsOfAWorkflowAsALiveTree(t *testing.T) {
	p := newProject(t, map[string]string{"two.yaml": twoSteps, "slow.yaml": "- {text: written, delay: 200ms}\n"})
	y, s := p.atTerminal(nil, "run", "two.yaml", "--no-budget")
	s.wait()
	<-y.done
	seen := y.plain()
	for _, want := range []string{
		"▸ one  running  cycle 1/50 ░░░░░░░░░░  waiting for the model\r\n· two  waiting\x1b[1A\r\x1b[J", // drawn, and taken away
		"✓ one  done  USD 0.0000\r\n▸ two  running",
		"✓ one  done  USD 0.0000\r\n✓ two  done  USD 0.0000\r\ncompleted: ",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("not on the screen: %q\n%q", want, seen)
		}
	}
}

// A workflow goes on where it stood, after Ctrl-C and after its process was killed:
// what had finished is not done again.
func TestAWorkflowGoesOnWhereItStood(t *testing.T) {
	for name, signal := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, map[string]string{
				"two.yaml":  strings.Replace(twoSteps, "- {id: two, agent: writer", "- {id: two, agent: slow", 1),
				"slow.yaml": "- text: written\n",
				"wait.yaml": "- {text: late, delay: 1h}\n",
			})
			p.write("two.yaml", strings.Replace(p.read("two.yaml"), "agents: {", "agents: {slow: {description: Waits., model: scripted/wait.yaml, tools: []}, ", 1))
			s := p.start("run", "two.yaml", "--no-budget")
			p.eventually("the second step begins", func() bool { return strings.Contains(s.err.String(), "▸ two") })
			if err := s.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			id, _, _ := strings.Cut(strings.TrimPrefix(s.wait().err, "run "), ":")
			p.write("wait.yaml", "- text: in time\n")
			went := p.exits(0, "runs", "resume", id)
			if strings.Contains(went.err, "▸ one") || !strings.Contains(went.err, "✓ two  done") || !strings.Contains(went.out, "in time") {
				t.Errorf("it goes on with\n%s%s", went.err, went.out)
			}
		})
	}
}
