package spec

import (
	"maps"
	"slices"
)

// Files returns the paths of the agent file and of the prompt, schema and secret files
// that it names. It does not include scripts of models and programs of hooks.
func (a *Agent) Files() []string {
	named := []string{a.File, a.Prompt.SystemFile}
	if a.ResultSchema != nil {
		named = append(named, a.ResultSchema.File)
	}
	named = append(named, a.Tools.MCPFile)
	named = append(named, a.Instructions...)
	for _, s := range a.Tools.MCP {
		named = append(named, s.Pins)
	}
	for _, c := range a.Tools.Commands {
		named = append(named, c.ArgsFile)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		named = append(named, a.Tools.Secrets[name].File)
	}
	for _, t := range a.Offers() {
		named = append(named, t.File)
	}
	var files []string
	for _, file := range named {
		if file != "" {
			files = append(files, PathIn(a.Dir, file))
		}
	}
	return files
}
