package spec

import "strings"

// refuseUnbuilt refuses what guards something, or changes what runs, and is
// not built yet: a setting that is ignored would promise what nobody keeps.
func (a *Agent) refuseUnbuilt(r *report) {
	guard := func(given bool, path string) {
		if given {
			r.at(path, "a file without it", "is not built yet, so it would guard nothing")
		}
	}
	change := func(given bool, path string) {
		if given {
			r.at(path, "a file without it", "is not built yet")
		}
	}
	guard(a.Sandbox != nil, "sandbox")
	if a.Tools.Hooks != nil {
		r.at("tools.hooks", "hooks at the top level of the file, by their stages: "+strings.Join(hookStages(), ", "), "is not read")
	}
	guard(a.Tools.Guards != nil, "tools.guards")
	change(len(a.Tools.MCP) > 0, "tools.mcp")
	change(a.Composite != nil && a.Iteration == nil, "composite")
	change(a.Carry != nil, "carry")
	change(a.OnIterationError != nil, "on_iteration_error")
	if a.Loop != nil {
		a.Loop.validate(r)
		change(a.Loop.Enabled, "loop.loopEnabled")
	}
}

func (l *Loop) validate(r *report) {
	within(r, "loop.maxIterations", l.MaxIterations, 1, 100)
	c := l.Criteria
	if c == nil {
		return
	}
	switch c.Type {
	case "":
		missing(r, "loop.loopCriteria.type", "one of max_iterations, regex, test_pass, manual")
	case "regex", "test_pass":
		if c.Value == "" {
			missing(r, "loop.loopCriteria.value", "a pattern or a command")
		}
	case "max_iterations", "manual":
		if c.Value != "" {
			r.at("loop.loopCriteria.value", "no such key", "a %s criterion takes no value", c.Type)
		}
	}
}
