package spec

import "slices"

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
	guard(a.Hooks != nil, "hooks")
	guard(a.Sandbox != nil, "sandbox")
	guard(a.Tools.Hooks != nil, "tools.hooks")
	guard(a.Tools.Guards != nil, "tools.guards")
	a.Tools.refuseUnbuilt(r)
	change(len(a.Tools.MCP) > 0, "tools.mcp")
	change(a.Composite != nil && a.Iteration == nil, "composite")
	change(a.Carry != nil, "carry")
	change(a.OnIterationError != nil, "on_iteration_error")
	if a.Loop != nil {
		a.Loop.validate(r)
		change(a.Loop.Enabled, "loop.loopEnabled")
	}
}

// refuseUnbuilt refuses the permissions that only a sandbox can hold. Where no
// command can run that is not known to read the workspace alone, our own tools
// hold them: they reach no other machine and no file outside the workspace.
func (t *Tools) refuseUnbuilt(r *report) {
	p := t.Permissions
	if p == nil {
		return
	}
	const sandbox = "needs a sandbox, which is not built yet"
	programs := p.Filesystem != "none" && p.Filesystem != "repo-readonly" && (t.Allow == nil || slices.Contains(t.Allow, "shell.exec"))
	switch {
	case p.Network == "allowlist" && programs:
		r.at("tools.permissions.network", "tools.allow without shell.exec, filesystem: repo-readonly, or host",
			"allowlist %s, because a program that shell.exec runs could reach other machines", sandbox)
	case p.Network == "none" && programs:
		r.at("tools.permissions.network", "tools.allow without shell.exec, or filesystem: repo-readonly",
			"none %s, because a program that shell.exec runs could reach other machines", sandbox)
	case (p.Network == "none" || p.Network == "allowlist") && len(t.Provider) > 0:
		r.at("tools.permissions.network", "a file without tools.provider", "is %s, and the provider's tools reach other machines", p.Network)
	}
	if p.Filesystem == "repo-readwrite" && programs {
		r.at("tools.permissions.filesystem", "tools.allow without shell.exec, or full",
			"repo-readwrite %s, because a program that shell.exec runs could write elsewhere", sandbox)
	}
	if p.Sandbox != "" {
		r.at("tools.permissions.sandbox", "a file without it", sandbox)
	}
}

func (l *Loop) validate(r *report) {
	within(r, "loop.maxIterations", l.MaxIterations, 1, 100)
	c := l.Criteria
	if c == nil {
		return
	}
	oneOf(r, "loop.loopCriteria.type", c.Type, "max_iterations", "regex", "test_pass", "manual")
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
