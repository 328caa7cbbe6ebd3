package launch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/tool"
)

// Signature describes the input and the result of a run of a file.
type Signature struct {
	// Vars are the variables that a run needs; TaskVars are those of the file's own
	// task, which only a run without an input needs.
	Vars, TaskVars []string
	// InputOptional reports that a run has something to do without an input.
	InputOptional bool
	// Result is the JSON Schema of the result; nil for a text.
	Result json.RawMessage
	// ReadOnly reports that no tool, hook or command of a run can change anything.
	ReadOnly bool
}

// signature returns the [Signature] of an agent file, including a team or a loop.
func signature(f File, o Options) (Signature, error) {
	o.checking = true
	a, err := spec.ParseAgent(f.Path, f.Text, o.checksOf(f))
	if err != nil {
		return Signature{}, err
	}
	s := Signature{Vars: a.Variables(), TaskVars: a.TaskVariables(), InputOptional: a.Prompt.Task != ""}
	if a.ResultSchema != nil && !a.StartsOthers() {
		s.Result = a.ResultSchema.JSON
	}
	s.ReadOnly, err = o.readOnly(a, map[string]bool{})
	if a.StartsOthers() {
		p := a.Plan()
		s.ReadOnly = s.ReadOnly && !acts(&p)
	}
	return s, err
}

// workflowSignature returns the [Signature] of a workflow file.
func workflowSignature(f File, o Options) (Signature, error) {
	o.checking = true
	w, err := parseWorkflow(f, o)
	if err != nil {
		return Signature{}, err
	}
	s := Signature{InputOptional: !idle(&w.Plan)}
	s.ReadOnly, err = o.readOnlyPlan(&w.Plan, w.Uses)
	s.ReadOnly = s.ReadOnly && w.Hooks == nil
	return s, err
}

// goalSignature returns the [Signature] of a goal file.
func goalSignature(f File, o Options) (Signature, error) {
	o.checking = true
	g, err := parseGoal(f, o)
	if err != nil {
		return Signature{}, err
	}
	s := Signature{InputOptional: true}
	s.ReadOnly, err = o.readOnlyPlan(&g.Steps, g.Uses)
	return s, err
}

// readOnlyPlan reports whether a run of a plan changes nothing.
func (o Options) readOnlyPlan(p *plan.Plan, uses map[string]*spec.Agent) (bool, error) {
	if acts(p) {
		return false, nil
	}
	for _, a := range uses {
		if readOnly, err := o.readOnly(a, map[string]bool{}); !readOnly || err != nil {
			return false, err
		}
	}
	return true, nil
}

// acts reports whether a plan does something itself: it runs a command, a function
// or a run of another kind.
func acts(p *plan.Plan) bool {
	found := p.HasCommands()
	p.Each(func(s *plan.Step) { found = found || s.Func != nil || s.Run != nil })
	return found
}

// readOnly reports whether a run of an agent changes nothing: the agent and the
// agents that it offers have only read-only tools, no hooks and no programs. seen
// holds the files that were checked.
func (o Options) readOnly(a *spec.Agent, seen map[string]bool) (bool, error) {
	changes := func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) }
	if a.External() != nil || a.Hooks != nil || len(a.Tools.Commands) > 0 || len(a.Tools.MCP) > 0 || !a.StartsOthers() && slices.ContainsFunc(anyBuiltin(), changes) {
		return false, nil
	}
	for _, t := range a.Offers() {
		below := t.Derived
		if below == nil {
			source, err := t.Source(a.Dir)
			if err != nil {
				return false, fmt.Errorf("launch: %w", err)
			}
			if seen[source] {
				continue
			}
			seen[source] = true
			if below, err = o.offered(source); err != nil {
				return false, err
			}
		}
		if readOnly, err := o.readOnly(below, seen); !readOnly || err != nil {
			return false, err
		}
	}
	return true, nil
}
