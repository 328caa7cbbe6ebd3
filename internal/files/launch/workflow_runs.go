package launch

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// nest lets an environment start the runs of the workflows that steps of a plan are.
func (o Options) nest(env *engine.Env, p *plan.Plan) {
	for name, inner := range p.Runs {
		child := o.inner(inner).Child()
		child.Secrets = env.Secrets
		env.Children[name] = child
	}
}

// inner is a workflow as a run that another one starts. Whatever becomes of its file,
// it does what that said when the outermost run began.
func (o Options) inner(p plan.Inner) assembly.Agent {
	depth := 0
	w, wrong := spec.RestoreWorkflow(p.File.Path, []byte(p.File.Text))
	if wrong == nil {
		o, depth = o.below(spec.AgentTool{MaxDepth: w.MaxDepth}), value(w.MaxDepth)
	}
	return assembly.Agent{
		MaxDepth: depth,
		Begin: func(_ string, input event.InputReceived) (event.RunStarted, engine.Env, error) {
			fail := func(err error) (event.RunStarted, engine.Env, error) { return event.RunStarted{}, engine.Env{}, err }
			if wrong != nil {
				return fail(wrong)
			}
			o := o
			o.forAgents = o.limitsOfAgents()
			root := w.Limits()
			o.offerUses(root)
			if strings.TrimSpace(input.Text) == "" && idle(&p.Plan) {
				return fail(ErrNoInput)
			}
			started, env, err := o.startPlan(p.Plan, root, input.Text)
			if err != nil {
				return fail(err)
			}
			started.Source, started.Spec, started.MaxDepth = p.File.Path, p.File.Text, 0
			started.Warnings = inWorkflow(started.Warnings)
			return started, o.dressed(env), nil
		},
		Resume: func(_ string, started event.RunStarted) (engine.Env, error) {
			env, err := resumeWorkflow(started, o)
			if err != nil {
				return env, err
			}
			return o.dressed(env), nil
		},
	}
}
