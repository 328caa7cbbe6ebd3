package spec

import "strings"

// refuseUnbuilt rejects settings that guard something, or change what runs, and are
// not built yet: ignoring them would break a promise.
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
