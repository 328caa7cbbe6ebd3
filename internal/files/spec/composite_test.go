package spec_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

func by(name string, after ...string) plan.Step {
	return plan.Step{ID: name, DependsOn: after, Agent: &plan.Agent{Name: name}}
}

func onlyIf(condition string, s plan.Step) plan.Step {
	s.Condition = condition
	return s
}

func rounds(l plan.Loop, body ...plan.Step) plan.Step {
	l.Body.Steps, l.OnLimit = body, plan.LimitIsOK
	return plan.Step{ID: "rounds", Loop: &l}
}

// rows: ALDO-70
func TestATeamIsTranslatedToAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []plan.Step
	}{
		"sequential": {"{strategy: sequential, subagents: [{agent: a}, {file: dir/b.yaml}, {file: x.yaml, as: c}]}",
			[]plan.Step{by("a"), by("b", "a"), by("c", "a", "b")}},
		"sequential, until somebody says so": {"{strategy: sequential, subagents: [{agent: a}, {agent: b}, {agent: c}]}\ntermination: {text_mention: the \"end\", max_turns: 3}",
			[]plan.Step{by("a"), onlyIf(`!(steps.a.content.contains("the \"end\""))`, by("b", "a")),
				onlyIf(`!(steps.a.content.contains("the \"end\"") || steps.b.content.contains("the \"end\""))`, by("c", "a", "b"))}},
		"parallel": {"{strategy: parallel, subagents: [{agent: a}, {agent: b}]}", []plan.Step{by("a"), by("b")}},
		"parallel, with an aggregator among the subagents": {"{strategy: parallel, subagents: [{file: z.yaml, as: sum}, {agent: a}, {agent: b}], aggregator: sum}",
			[]plan.Step{by("a"), by("b"), by("sum", "a", "b")}},
		"debate": {"{strategy: debate, subagents: [{agent: a}, {agent: b}], aggregator: c, max_rounds: 3}",
			[]plan.Step{rounds(plan.Loop{Max: 3, Output: plan.Cumulative}, by("a"), by("b")), by("c", "rounds")}},
		"debate, bounded": {"{strategy: debate, subagents: [{agent: a}, {agent: b}], aggregator: c, max_rounds: 9}\ntermination: {max_turns: 6, text_mention: done}",
			[]plan.Step{rounds(plan.Loop{Max: 2, Output: plan.Cumulative,
				StopWhen: []plan.Stop{{Expression: `steps.a.content.contains("done") || steps.b.content.contains("done")`}}}, by("a"), by("b")), by("c", "rounds")}},
		"iterative": {"{strategy: iterative, subagents: [{agent: a}, {agent: b}], max_rounds: 4, terminate: round > 2}\ntermination: {max_turns: 100, text_mention: x}",
			[]plan.Step{rounds(plan.Loop{Max: 4, StopWhen: []plan.Stop{
				{Expression: "round > 2"}, {Expression: `steps.a.content.contains("x") || steps.b.content.contains("x")`}}}, by("a"), by("b", "a"))}},
	} {
		a, err := spec.ParseAgent("team.yaml", []byte("identity: {name: team}\ncomposite: "+c.file+"\n"), spec.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := a.Plan()
		if err := got.Check(); err != nil || !got.Team || got.Name != "team" || len(got.Steps) != len(c.want) {
			t.Errorf("%s: %v, %+v", name, err, got)
			continue
		}
		if got, want := stored(t, got.Steps), stored(t, c.want); got != want {
			t.Errorf("%s: it is\n%s\nwant\n%s", name, got, want)
		}
	}
}

// stored are steps as a run's first event has them.
func stored(t *testing.T, steps []plan.Step) string {
	t.Helper()
	text, err := json.MarshalIndent(steps, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The files of a team are those of its members, as a run pins them.
func TestATeamOffersItsMembers(t *testing.T) {
	const file = "identity: {name: team}\ncomposite: {strategy: parallel, subagents: [{file: dir/b.yaml, as: x}, {agent: a}], aggregator: sum}\n"
	var looked []string
	a, err := spec.ParseAgent("/teams/team.yaml", []byte(file), spec.Options{CheckAgent: func(source string) error {
		looked = append(looked, source)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/teams/dir/b.yaml", "/teams/a.yaml", "/teams/sum.yaml"}; !slices.Equal(looked, want) || !slices.Equal(a.Files()[1:], want) {
		t.Errorf("looked at %v, protected are %v", looked, a.Files())
	}
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := spec.Restore("/teams/team.yaml", text)
	if err != nil || stored(t, again.Plan().Steps) != stored(t, a.Plan().Steps) {
		t.Errorf("restored as %+v, %v", again, err)
	}
}

// A file that was sent starts no program of this machine.
func TestATeamThatWasSentIsRefused(t *testing.T) {
	const file = "identity: {name: team}\ncomposite: {strategy: debate, subagents: [{file: /etc/passwd, as: x}], aggregator: sum, max_rounds: 1}\ntermination: {max_usd: 1}\n"
	_, err := spec.ParseAgent("sent.yaml", []byte(file), spec.Options{Sent: true, CheckAgent: func(source string) error {
		t.Errorf("%s was looked at", source)
		return nil
	}})
	problems, _ := errors.AsType[decode.Errors](err)
	if len(problems) != 1 || problems[0].Path != "composite" || problems[0].Line != 2 {
		t.Errorf("got %v", err)
	}
}

// ALDO's own files of teams say that the team itself has no tools.
func TestATeamOfALDOMaySayThatItHasNoTools(t *testing.T) {
	for file, right := range map[string]bool{
		"apiVersion: aldo-ai/agent.v1\ntools: {allow: []}\n":        true,
		"apiVersion: aldo-ai/agent.v1\ntools: {allow: [fs.read]}\n": false,
		"apiVersion: aldo-ai/agent.v1\ntools: {mode: plan}\n":       false,
		"apiVersion: pawl/v1\ntools: {allow: []}\n":                 false,
	} {
		_, err := spec.ParseAgent("team.yaml", []byte(file+"identity: {name: team}\ncomposite: {strategy: sequential, subagents: [{agent: a}, {agent: b}]}\n"), spec.Options{})
		if (err == nil) != right {
			t.Errorf("%s: %v", file, err)
		}
	}
}
