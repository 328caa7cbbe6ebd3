package launch

import (
	"maps"
	"slices"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
)

// ownFiles are patterns for the agent file, the files that it names, and the
// config file, where they lie in the workspace. A run holds what they said when
// it began; the next one begins with what they say then.
func (o Options) ownFiles(a *spec.Agent) []policy.Pattern {
	var names literals
	for _, file := range a.Files() {
		names.add(o.Workspace, file)
	}
	resolver := o.resolver(a.Dir)
	for _, model := range o.modelNames(a) {
		if script, ok := resolver.Script(model); ok {
			names.add(o.Workspace, script)
		}
	}
	if o.Config.File != "" {
		names.add(o.Workspace, o.Config.File)
	}
	return names
}

// modelNames are the models that a run of the file may call. A file that is read
// for a run that goes on does not know what its classes and its role stand for,
// so those of the config file are all here.
func (o Options) modelNames(a *spec.Agent) []string {
	return slices.Concat([]string{o.Model}, a.Chain(),
		slices.Sorted(maps.Values(o.Config.Classes)), slices.Sorted(maps.Values(o.Config.Roles)))
}
