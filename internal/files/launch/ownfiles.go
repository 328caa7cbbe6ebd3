package launch

import (
	"maps"
	"slices"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// ownFiles are patterns for the agent file, the files that it names, and the
// config file, where they lie in the workspace. A run holds what they said when
// it began; the next one begins with what they say then.
func (o Options) ownFiles(a *spec.Agent) []policy.Pattern {
	var names literals
	for _, file := range a.Files() {
		names.add(o.Workspace, file)
	}
	o.addScripts(&names, a.Dir, o.modelNames(a)...)
	o.addConfig(&names)
	return names
}

// addScripts adds those of models that answer from one, as they are found from a
// file's directory.
func (o Options) addScripts(names *literals, dir string, models ...string) {
	resolver := o.resolver(dir)
	for _, model := range models {
		if script, ok := resolver.Script(model); ok {
			names.add(o.Workspace, script)
		}
	}
}

func (o Options) addConfig(names *literals) {
	if o.Config.File != "" {
		names.add(o.Workspace, o.Config.File)
	}
}

// opensConfig reports whether tools of the file may write the config file as it
// lies now, by rules that were made when it lay elsewhere.
func (o Options) opensConfig(a *spec.Agent, r policy.Rules) bool {
	if !slices.ContainsFunc(anyBuiltin(), func(t tool.Tool) bool { return t.Writing != nil && allowed(a, t.Name) }) {
		return false
	}
	var names literals
	o.addConfig(&names)
	held := protect(r)
	return slices.ContainsFunc(names, func(name policy.Pattern) bool { return !held.Protects(string(name)) })
}

// modelNames are the models that a run of the file may call. A file that is read
// for a run that goes on does not know what its classes and its role stand for,
// so those of the config file are all here.
func (o Options) modelNames(a *spec.Agent) []string {
	return slices.Concat([]string{o.Model}, a.Chain(),
		slices.Sorted(maps.Values(o.Config.Classes)), slices.Sorted(maps.Values(o.Config.Roles)))
}
