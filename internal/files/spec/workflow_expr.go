package spec

import "github.com/pawlrun/pawl/internal/files/expr"

// checkUntil checks the condition that ends the loop of a step.
func (f *workflowFile) checkUntil(path, text string, s *WorkflowStep) {
	scope := expr.Scope{Place: expr.Until, Single: len(s.Loop.Steps) == 0, Steps: f.results(s.Loop.Steps)}
	if scope.Single {
		scope.Self = f.known(&WorkflowStep{Agent: s.Agent, Command: s.Command})
	}
	f.check(path, text, scope, nil)
}

// check reports the errors in an expression. If it is evaluated before all steps are
// done, it may name only the dependencies of its step.
func (f *workflowFile) check(path, text string, scope expr.Scope, in *scopeOf) {
	err := f.checker.Check(text, scope)
	if wrongExpression(f.Report, path, text, err); err != nil {
		return
	}
	never(f.Report, path, f.checker.Never(text, scope))
	if in == nil {
		return
	}
	for _, id := range f.checker.Steps(text) {
		if f.waitsFor(*in, id) {
			continue
		}
		const message = "names the step %s, which may not be done by then, because this step does not depend on it"
		if f.w.APIVersion == "" {
			f.Warn(path, message, id)
		} else {
			f.fail(path, "a step that this one depends on", message, id)
		}
	}
}

func (f *workflowFile) waitsFor(in scopeOf, id string) bool {
	for at := range in.above {
		if in.steps[at].ID == id {
			return true
		}
	}
	return false
}

// results returns what is known about the results of steps, by their ids.
func (f *workflowFile) results(steps []WorkflowStep) map[string]expr.Step {
	all := map[string]expr.Step{}
	for i := range steps {
		all[steps[i].ID] = f.known(&steps[i])
	}
	return all
}

// known returns what is known about a step before it runs.
func (f *workflowFile) known(s *WorkflowStep) (of expr.Step) {
	switch {
	case s.Loop != nil:
		of.ForEach = s.Loop.ForEach != nil
	case len(s.Command) > 0:
		of.Command = true
	case s.Include == "" && s.Workflow == "":
		of.Result = f.schemaOf(s.Agent)
	}
	return of
}
