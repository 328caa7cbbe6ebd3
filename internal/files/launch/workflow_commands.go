package launch

import (
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool/shell"
)

// runner is what the commands of a plan are to policy and to the sandbox: calls of an
// agent that has shell.exec alone, under the permissions of the workflow.
func runner(root *spec.Agent) *spec.Agent {
	a := *root
	a.Tools = spec.Tools{Allow: spec.Names{shellTool}, Permissions: root.Tools.Permissions}
	return &a
}

// runCommands lets an environment run the commands of a plan, in a sandbox of their
// own. The rules that judge them are nil where the plan has none.
func (o *Options) runCommands(env *engine.Env, p *plan.Plan, root *spec.Agent) (*policy.Rules, error) {
	if !p.HasCommands() {
		return nil, nil
	}
	a := runner(root)
	o.nested = nestedFor(a, o.Workspace, o.tree.builtin())
	rules := o.permissions(a)
	return &rules, o.confineCommands(env, a, rules, "")
}

// resumeCommands is the same for a run that goes on, by the rules and in no weaker
// sandbox than it began with.
func (o *Options) resumeCommands(env *engine.Env, rules *policy.Rules, tier string, root *spec.Agent) error {
	if rules == nil {
		return nil
	}
	if err := o.guarded(*rules); err != nil {
		return err
	}
	o.nested.patterns, o.protected = rules.Nested, rules.Protected
	return o.confineCommands(env, runner(root), *rules, tier)
}

func (o *Options) confineCommands(env *engine.Env, a *spec.Agent, rules policy.Rules, tier string) (err error) {
	if o.confined, err = o.confine(a, tier); err != nil {
		return err
	}
	env.Commands, env.Rules, env.Close = shell.Commands(o.programs(a, rules)), rules, o.closeBox
	return nil
}
