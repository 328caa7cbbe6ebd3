package spec

import (
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// refuseUnbuilt rejects settings that guard something, or change what runs, and are
// not built yet: ignoring them would break a promise.
func (a *Agent) refuseUnbuilt(r *decode.Report) {
	guard := func(given bool, path string) {
		if given {
			r.At(path, "a file without it", "is not built yet, so it would guard nothing")
		}
	}
	guard(a.Sandbox != nil, "sandbox")
	if a.Tools.Hooks != nil {
		r.At("tools.hooks", "hooks at the top level of the file, by their stages: "+strings.Join(hookStages(), ", "), "is not read")
	}
	guard(a.Tools.Guards != nil, "tools.guards")
}
