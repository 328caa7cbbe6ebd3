package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal/memory"
)

// worker works for three cycles, as an iteration or in one answer.
const worker = "identity: {name: worker}\nmodel_policy: {primary: scripted/work.yaml}\ntools: {allow: []}\n"

func teamsIn(t *testing.T) string {
	t.Helper()
	return agentsIn(t, map[string]string{
		"worker.yaml":   worker + "iteration: {max_cycles: 9, termination_conditions: [{kind: text-includes, text: <done>}]}\n",
		"answerer.yaml": strings.Replace(worker, "worker", "answerer", 1),
		"work.yaml":     "- text: One.\n- text: Two.\n- text: \"<done> Three.\"\n- text: Never.\n",
	})
}

// runTeam runs a team, and returns its events and the outcomes of its members.
func runTeam(t *testing.T, dir, team string) (events []event.Event, members []event.ChildFinished) {
	t.Helper()
	path := filepath.Join(dir, "team.yaml")
	if err := os.WriteFile(path, []byte("identity: {name: team}\n"+team), 0o600); err != nil {
		t.Fatal(err)
	}
	started, env, err := launch.Agent(read(t, path), "Do it.", options(t))
	if err != nil {
		t.Fatal(err)
	}
	_, events = run(t, memory.New(nil), started, env)
	var texts event.Texts
	for i := range events {
		texts.Note(&events[i])
	}
	for _, e := range events {
		if d, is := e.Data.(event.ChildFinished); is {
			members = append(members, d)
		}
	}
	return events, members
}

// Each member completes its own loop; the team's rounds repeat the members.
// rows: ALDO-72, ALF-83
func TestAMemberWithIterationRunsAsAnIterativeAgent(t *testing.T) {
	dir := teamsIn(t)
	started, env, err := launch.Agent(read(t, filepath.Join(dir, "worker.yaml")), "Do it.", options(t))
	if err != nil {
		t.Fatal(err)
	}
	_, alone := run(t, memory.New(nil), started, env)
	want := outcome(t, alone)
	if want.Reason != event.ReasonConditionMet || want.Cycles != 3 {
		t.Fatalf("alone it ends as %+v", want)
	}
	_, members := runTeam(t, dir, "composite: {strategy: iterative, subagents: [{agent: worker}, {agent: answerer}], max_rounds: 2}\n")
	var got []string
	for _, m := range members {
		got = append(got, fmt.Sprint(m.Outcome.Reason, " ", m.Outcome.Cycles, " ", m.Outcome.FinalOutput))
	}
	round := []string{fmt.Sprint(want.Reason, " ", want.Cycles, " ", want.FinalOutput), "final_answer 1 One."}
	if !slices.Equal(got, slices.Concat(round, round)) {
		t.Errorf("the members ended as %q", got)
	}
}

// A team's own run calls no model, and an iteration starts no run.
// rows: ALDO-71
func TestATeamIsManyAgentsAndAnIterationIsOne(t *testing.T) {
	dir := teamsIn(t)
	count := func(events []event.Event) (calls, children int) {
		for _, e := range events {
			switch e.Data.(type) {
			case event.ModelRequested:
				calls++
			case event.ChildStarted:
				children++
			}
		}
		return calls, children
	}
	for strategy, want := range map[string]int{
		"sequential": 2, "parallel, aggregator: answerer": 2, "debate, aggregator: answerer, max_rounds: 3": 4, "iterative, max_rounds: 3": 6,
	} {
		events, _ := runTeam(t, dir, "composite: {subagents: [{agent: worker}, {agent: answerer}], strategy: "+strategy+"}\n")
		if calls, children := count(events); calls != 0 || children != want || !outcome(t, events).OK {
			t.Errorf("%s: %d calls, %d children, %+v", strategy, calls, children, outcome(t, events))
		}
	}
	started, env, err := launch.Agent(read(t, filepath.Join(dir, "worker.yaml")), "Do it.", options(t))
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, memory.New(nil), started, env)
	if calls, children := count(events); calls != 3 || children != 0 {
		t.Errorf("an iteration: %d calls, %d children", calls, children)
	}
}

// A team uses its files as they were when it began.
func TestATeamGoesOnByTheFilesThatItBeganWith(t *testing.T) {
	dir := teamsIn(t)
	path := filepath.Join(dir, "team.yaml")
	if err := os.WriteFile(path, []byte("identity: {name: team}\ncomposite: {strategy: sequential, subagents: [{agent: worker}, {agent: answerer, as: second}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := kinds.Read(path)
	if err != nil || f.Kind.Name != launch.KindTeam {
		t.Fatalf("%+v, %v", f.Kind.Name, err)
	}
	o := options(t)
	started, _, err := f.Launch("Do it.", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team.yaml", "worker.yaml", "answerer.yaml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := kinds.Resume(started, o)
	if err != nil {
		t.Fatal(err)
	}
	_, events := run(t, memory.New(nil), started, again)
	if o := outcome(t, events); !o.OK || o.Steps.Completed != 2 {
		t.Errorf("%+v", o)
	}
}
