package cli

import (
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
)

func TestEveryLimitCanBeChangedWhileTheRunGoes(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("touch begun; until [ -e go ]; do sleep 0.01; done") + "- text: done\n",
	})
	run := p.start("run", "agent.yaml", "go", "--json")
	p.eventually("the tool runs", p.exists("begun"))
	id := p.newest()
	for _, setting := range budget.Settings() {
		p.exits(0, "runs", "budget", id, setting, "100000")
	}
	p.write("go", "")
	f := run.wait()
	raised := map[string]float64{}
	for _, d := range of[event.BudgetRaised](p.events(f.out)) {
		raised[d.Setting] = d.Value
	}
	for _, setting := range budget.Settings() {
		if raised[setting] != 100_000 {
			t.Errorf("%s was changed to %v", setting, raised[setting])
		}
	}
	if f.code != 0 {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
}
