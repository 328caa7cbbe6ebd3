package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// retry returns a retry of the run that a player played.
func (p *player) retry() *flow.Retry {
	r := flow.NewRetry()
	for _, e := range p.events {
		if d, is := e.Data.(event.Stepped); is {
			e.Step = d.OfStep()
		}
		r.Add(&e)
	}
	return r
}

// broken plays a plan in which the steps named in fails do not complete: a loop of two
// iterations with a delay, then a loop over three items with an agent and a command for
// each, then a last step.
func broken(t *testing.T, fails ...string) *player {
	t.Helper()
	each := &plan.Loop{Items: static(3), Body: plan.Plan{Steps: []plan.Step{step("look"), program("run", []string{"look"}, "run", "it")}}}
	each.Items.OnError = plan.Collect
	p := newPlayer(t, plan.Plan{Steps: []plan.Step{
		{ID: "again", Loop: &plan.Loop{Max: 2, Delay: time.Minute, StopWhen: []plan.Stop{{Expression: "enough"}}, OnLimit: plan.LimitIsOK, Body: choosing()}},
		{ID: "each", DependsOn: []string{"again"}, Loop: each}, step("end", "each"),
	}})
	answers := map[string]event.Outcome{}
	for _, id := range fails {
		answers[id] = event.Outcome{Status: event.StatusFailed, Error: &event.Failure{Class: "auth", Message: "no"}}
	}
	p.says = named(answers)
	p.eval = isTrue(func(a machine.Evaluate) bool { return a.Expression == "choose" })
	p.exec = func(a machine.RunCommand) event.CommandFinished {
		if _, bad := answers[a.ID]; bad {
			return exits(1, "no")
		}
		return exits(0, "yes")
	}
	p.play()
	return p
}

// begins returns the type of the first event that both tries do not share, and its step.
func (p *player) begins(seq int64) string {
	d := p.events[seq].Data
	of := ""
	if s, is := d.(event.Stepped); is {
		of = " " + s.OfStep()
	}
	return fmt.Sprint(d.EventType(), of)
}

func TestARetryBeginsAtTheOutermostStepThatFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		fails []string
		step  string
		begin string
		steps []string
	}{
		"the last step":               {[]string{"end"}, "", "child.started end", []string{"end"}},
		"an item":                     {[]string{"each[1].look"}, "", "step.started each", []string{"each[1].look"}},
		"two items, one in a command": {[]string{"each[0].look", "each[2].run"}, "", "step.started each", []string{"each[0].look", "each[2].run"}},
		"the second iteration":        {[]string{"again.1.first"}, "", "step.started again", []string{"again.1.first"}},
		"a named step":                {nil, "each[1].look", "step.started each", []string{"each[1].look"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := broken(t, tt.fails...)
			seq, steps, err := p.retry().Begin(tt.step)
			if err != nil {
				t.Fatalf("%v\n%s", err, p.story())
			}
			same(t, steps, tt.steps)
			same(t, p.begins(seq), tt.begin)
		})
	}
	p := broken(t)
	if _, _, err := p.retry().Begin(""); !errors.Is(err, flow.ErrNothingFailed) {
		t.Errorf("of a run that completed: %v", err)
	}
	if _, _, err := p.retry().Begin("none"); !errors.Is(err, flow.ErrNoStep) {
		t.Errorf("of a step that is not there: %v", err)
	}
}

func TestARetryKeepsWhatCompleted(t *testing.T) {
	p := broken(t, "each[1].look", "again.1.chosen")
	r := p.retry()
	if _, steps, err := r.Begin(""); err != nil || len(steps) != 1 || steps[0] != "again.1.chosen" {
		t.Fatalf("%v, %v", steps, err)
	}
	for id, want := range map[string]int{"again.0.first": 2, "again.0.chosen": 2, "again.1.first": 2, "again.1.chosen": 0, "each[0].look": 0} {
		if got := r.Kept(machine.StartChild{ID: id, Step: id}); len(got) != want {
			t.Errorf("of %s %d events are kept, want %d", id, len(got), want)
		}
	}
	for id, want := range map[string]int{"again.0/0": 1, "again.0.chosen/condition": 1, "again.1.chosen/condition": 0, "none": 0} {
		of, _, _ := strings.Cut(id, "/")
		if got := r.Kept(machine.Evaluate{ID: id, Step: of}); len(got) != want {
			t.Errorf("of the condition %s %d events are kept, want %d", id, len(got), want)
		}
	}
	if got := r.Kept(machine.Wait{ID: "again/delay/1"}); len(got) != 2 {
		t.Errorf("of the delay is kept %v", got)
	}
	if got := r.Kept(machine.Record{Data: event.RunCompleted{}}); got != nil {
		t.Errorf("of the end is kept %v", got)
	}

	p = broken(t, "each[2].run")
	r = p.retry()
	if _, _, err := r.Begin(""); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"each[0].run": 2, "each[1].run": 2, "each[2].run": 0} {
		if got := r.Kept(machine.RunCommand{ID: id, Step: id}); len(got) != want {
			raw, _ := json.Marshal(got)
			t.Errorf("of the command %s is kept %s", id, raw)
		}
	}
}
