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
	guard(a.Sandbox != nil, "sandbox")
	if a.Tools.Hooks != nil {
		r.at("tools.hooks", "hooks at the top level of the file, by their stages: "+strings.Join(hookStages(), ", "), "is not read")
	}
	guard(a.Tools.Guards != nil, "tools.guards")
}
