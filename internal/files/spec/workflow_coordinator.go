package spec

import (
	"cmp"
	"slices"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// CoordinatorAgent is the name of the agent that receives messages of the steps of
// a workflow.
const CoordinatorAgent = "coordinator agent"

// validateCoordinator checks the coordinator.
func (f *workflowFile) validateCoordinator() {
	c := f.w.Coordinator
	if c == nil || c.Off {
		return
	}
	decode.Within(f.Report, "coordinator.maxTurns", c.MaxTurns, 0, 1_000_000)
	f.text("coordinator.prompt", c.Prompt)
	if c.Model != "" {
		f.model("coordinator.model", c.Model)
	}
}

// coordinate adds the coordinator to a plan, unless the file has none, or no agent
// could send it messages. If the file names no model for it, it has that of the class
// default, or that of the first step's agent.
func (f *workflowFile) coordinate(p *plan.Plan) {
	c := f.w.Coordinator
	first := f.uses[firstAgent(p.Steps)]
	if first == nil || c != nil && c.Off {
		return
	}
	if c == nil {
		c = &Coordinator{}
	}
	a := &Agent{Identity: Identity{Name: CoordinatorAgent, Description: "Receives what the steps send."}, Dir: f.w.Dir, File: f.w.File}
	switch model := cmp.Or(f.bare(c.Model), f.options.Classes["default"]); {
	case model != "":
		a.ModelPolicy.Primary = Model{Model: model}
	case len(first.Chain()) > 0:
		a.ModelPolicy.Primary, a.Dir, a.File = Model{Model: first.Chain()[0]}, first.Dir, first.File // the directory of a script
	case f.options.Model == "":
		return // the steps have no model either, so nothing runs
	}
	if c.MaxTurns != nil && *c.MaxTurns > 0 {
		a.MaxCycles = c.MaxTurns
	}
	a.Prompt.System = f.text("coordinator.prompt", c.Prompt)
	a.System = a.Prompt.System
	a.Tools.Allow = Names{}
	p.Coordinator = f.named(CoordinatorAgent)
	f.uses[p.Coordinator] = a
}

// firstAgent returns the agent of the first step that has one, empty for none.
func firstAgent(steps []plan.Step) string {
	for _, s := range steps {
		switch {
		case s.Agent != nil:
			return s.Agent.Name
		case s.Plan != nil:
			return firstAgent(slices.Concat(s.Plan.Steps, steps[1:]))
		case s.Loop != nil:
			return firstAgent(slices.Concat(s.Loop.Body.Steps, steps[1:]))
		}
		steps = steps[1:]
	}
	return ""
}
